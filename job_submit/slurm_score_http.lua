-- slurm_score_http: one POST on a unix socket within one deadline, over LuaSocket, in Lua 5.1 to 5.4.
--
-- The functions of an exchange return their result, or nil and why not. Nothing is read without a limit, neither in
-- time nor in size (LuaSocket's receive("*l") takes any number of bytes).

local M = {}

local MAX_HEAD = 8192 -- bytes of the reply before its body
local CHUNK = 8192 -- bytes of one read; LuaSocket's own buffer has this size

local options -- those of slurm_score
local new_stream -- LuaSocket's
local request_head -- of every request, up to the value of User-Agent
local connection -- kept between submissions: slurmctld keeps the Lua state until the script's file changes

M.gettime = nil -- LuaSocket's clock in seconds; nil as long as LuaSocket isn't loaded

-- Time ------------------------------------------------------------------------------------------------------

-- A function that returns the seconds left until the deadline; nil when there are none, or when the clock went
-- back: LuaSocket has no other clock than the wall's.
function M.start_timer()
  local started = M.gettime()
  local latest = started
  return function()
    local now = M.gettime()
    local left = options.deadline_s - (now - started)
    if not (now >= latest and left > 0) then
      return nil
    end
    latest = now
    return left
  end
end

-- The next call on the connection may wait so long. LuaSocket's manual has "b" for one wait and "t" for the whole
-- call; a value below 0 is "for ever", and 0 is "not at all" in "b" alone.
local function allow(seconds)
  connection:settimeout(seconds, "b")
  connection:settimeout(seconds, "t")
end

-- The call that `work` makes, with what is left of the time.
local function in_time(timer, work, argument)
  local left = timer()
  if not left then
    return nil, "timeout"
  end
  allow(left)
  return work(argument)
end

-- Steps -----------------------------------------------------------------------------------------------------

function M.hang_up()
  local old = connection
  connection = nil
  if old then
    old:close()
  end
end

local function connect()
  return connection:connect(options.socket)
end

local function open(timer)
  local why
  connection, why = new_stream()
  if not connection then
    return nil, why
  end
  return in_time(timer, connect)
end

local function send(request)
  return connection:send(request)
end

-- What has arrived, at least one byte: one wait for the first, none for the rest.
local function read_some()
  local first, why = connection:receive(1)
  if not first then
    return nil, why
  end
  allow(0)
  local rest, _, partial = connection:receive(CHUNK)
  return first .. (rest or partial or "")
end

-- Nothing to read and not closed: the service still holds the connection, and owes nothing on it.
local function is_idle()
  allow(0)
  local byte, why = connection:receive(1)
  return not byte and why == "timeout"
end

-- Length of the body that the head (with its last CRLF) announces.
local function parse_head(head)
  local status = head:match("^HTTP/1%.1 (%d%d%d)[ \r]")
  if status ~= "200" then
    return nil, "HTTP status " .. (status or "missing")
  end
  local length = tonumber(head:lower():match("\r\ncontent%-length:[ \t]*(%d+)[ \t]*\r\n") or "")
  if not length then
    return nil, "no Content-Length"
  elseif length > options.max_reply then
    return nil, "reply too long"
  end
  return length
end

-- What was read until the head was whole, and where the head ends.
local function read_head(timer)
  local got = ""
  repeat
    if #got > MAX_HEAD then
      return nil, "head too long"
    end
    local piece, why = in_time(timer, read_some)
    if not piece then
      return nil, why
    end
    got = got .. piece
    local _, head_end = got:find("\r\n\r\n", 1, true)
  until head_end
  return got, select(2, got:find("\r\n\r\n", 1, true))
end

-- The body of one reply.
local function read_reply(timer)
  local got, head_end = read_head(timer)
  if not got then
    return nil, head_end
  end
  local length, no_length = parse_head(got:sub(1, head_end - 2))
  if not length then
    return nil, no_length
  end
  while #got < head_end + length do
    local piece, why = in_time(timer, read_some)
    if not piece then
      return nil, why
    end
    got = got .. piece
  end
  if #got > head_end + length then
    return nil, "more than one reply"
  end
  return got:sub(head_end + 1)
end

local function ask_once(request, timer)
  local step, done, why = "connect", connection, nil
  if not done then
    done, why = open(timer)
  end
  if done then
    step, done, why = "send", in_time(timer, send, request)
  end
  if done then
    step, done, why = "receive", read_reply(timer)
  end
  if not done then
    M.hang_up()
  end
  return done, why, step
end

-- The body of the reply to `body`. A kept connection may have ended since, whether the service announced it
-- (`Connection: close`), restarted or lost patience: that costs one more try.
function M.post(body, user_agent, timer)
  local request = request_head .. user_agent .. "\r\nContent-Length: " .. string.format("%d", #body) .. "\r\n\r\n" .. body
  if connection and not is_idle() then
    M.hang_up()
  end
  local was_kept = connection ~= nil
  local reply, why, step = ask_once(request, timer)
  if was_kept and why == "closed" then
    reply, why, step = ask_once(request, timer)
  end
  return reply, not reply and step .. ": " .. tostring(why) or nil
end

-- LuaSocket -------------------------------------------------------------------------------------------------

local function require_luasocket()
  local socket, unix = require("socket"), require("socket.unix")
  -- LuaSocket 3.0 has a table with stream(), older releases a function.
  return socket.gettime, type(unix) == "table" and unix.stream or unix
end

-- Loads LuaSocket, looked for in the site's own folders first; package.path and package.cpath are the same again
-- afterwards. Returns true, or false and why.
function M.setup(wanted)
  options = wanted
  request_head = "POST " .. options.path .. " HTTP/1.1\r\nHost: slurm-score\r\nContent-Type: application/json"
    .. "\r\nUser-Agent: "
  local path, cpath = package.path, package.cpath
  package.path = options.luasocket_path .. ";" .. path
  package.cpath = options.luasocket_cpath .. ";" .. cpath
  local is_loaded, time_or_why, stream = pcall(require_luasocket)
  package.path, package.cpath = path, cpath
  if not is_loaded then
    return false, time_or_why
  end
  M.gettime, new_stream = time_or_why, stream
  return true
end

return M
