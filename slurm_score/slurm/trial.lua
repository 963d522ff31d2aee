-- trial.lua: looks at a job_submit.lua without letting it do anything. Called with the script's text, the name that
-- messages give it, and how many instructions it may take; returns what was found, one `key=value` on each line.
--
-- Compiled, the script shows its syntax. Run among stubs, it shows what it defines: whatever it asks of Slurm, of a
-- module or of the system answers every index and call with itself and does nothing. Lua 5.1 to 5.5.

local source, name, limit = ...
local own_source = debug.getinfo(1, "S").source
local getinfo, sethook = debug.getinfo, debug.sethook
local find, gsub, format = string.find, string.gsub, string.format -- the script may replace Lua's own
local concat, pcall, rawequal, rawget, tostring, type = table.concat, pcall, rawequal, rawget, tostring, type
local error, setmetatable = error, setmetatable

local found = {}
local function tell(key, value)
  found[#found + 1] = key .. "=" .. gsub(tostring(value), "%c+", " ")
end

-- The stub. Comparing it with a number raises on every Lua, so what scripts compare is a number below.
local stub, answers = {}, {}
for _, event in ipairs({ "index", "call", "concat", "unm", "add", "sub", "mul", "div", "idiv", "mod", "pow" }) do
  answers["__" .. event] = function()
    return stub
  end
end
answers.__newindex = function() end
answers.__len = function()
  return 0
end
answers.__tostring = function()
  return "stub"
end
answers.__metatable = "stub"
setmetatable(stub, answers)

local function otherwise_stub(values)
  return setmetatable(values, { __index = answers.__index })
end

local function nothing() end

local file = otherwise_stub({
  read = function(_, what)
    return type(what) == "string" and find(what, "^%*?a") and "" or nil
  end,
  lines = function()
    return nothing
  end,
})

local slurm = setmetatable({
  SUCCESS = 0,
  ERROR = -1,
  FAILURE = -1,
  NO_VAL = 0xfffffffe,
  NO_VAL16 = 0xfffe,
  NO_VAL8 = 0xfe,
  INFINITE = 0xffffffff,
  NICE_OFFSET = 0x80000000,
  CLUSTER_NAME = "cluster",
}, {
  __index = function(_, key)
    return type(key) == "string" and find(key, "^[%u%d_]+$") and 1 or stub
  end,
})

-- What the script gives our own module's setup; the module is the one that it may really be handed.
local options = {}
local function setup(given)
  for _, key in ipairs({ "socket", "luasocket_path", "luasocket_cpath" }) do
    options[key] = type(given) == "table" and type(given[key]) == "string" and given[key] or options[key]
  end
end
local score = otherwise_stub({ setup = setup, submit = nothing, modify = nothing })

local world = {
  slurm = slurm,
  io = otherwise_stub({
    lines = function()
      return nothing
    end,
    open = function()
      return file
    end,
    popen = function()
      return file
    end,
  }),
  os = otherwise_stub({ clock = os.clock, date = os.date, difftime = os.difftime, time = os.time }),
  require = function(module)
    return module == "slurm_score" and score or stub
  end,
}
for _, key in ipairs({
  "assert error ipairs next pairs pcall rawequal rawget rawlen rawset select tonumber tostring type unpack",
  "_VERSION math string table utf8 bit32",
}) do
  gsub(key, "%S+", function(word)
    world[word] = _G[word]
  end)
end
world._G = world

-- No instruction is counted while Lua runs a handler of xpcall or a finalizer, so these do without.
local function handled(handler, ran, ...)
  if ran then
    return true, ...
  end
  return false, handler(...)
end
function world.xpcall(work, handler, ...)
  return handled(handler, pcall(work, ...))
end
function world.setmetatable(value, events)
  local is_final = type(events) == "table" and rawget(events, "__gc") ~= nil
  return is_final and value or setmetatable(value, events)
end
otherwise_stub(world)

-- The text as loadfile takes it: a first line with # is skipped, from 5.2 on a byte order mark too.
local function compile()
  if setfenv then
    source = gsub(source, "^#[^\n]*", "")
    if find(source, "^\27") then
      return nil, "compiled scripts are not looked at"
    end
    local chunk, fault = loadstring(source, "@" .. name)
    return chunk and setfenv(chunk, world), fault
  end
  source = gsub(gsub(source, "^\239\187\191", ""), "^#[^\n]*", "")
  return load(source, "@" .. name, "t", world)
end

-- Over the limit every further instruction of the script raises, so that no pcall of its own holds it up.
local is_endless = false
local function stop()
  is_endless = true
  sethook(stop, "", 1)
  if getinfo(2, "S").source ~= own_source then
    error("it does not end", 0)
  end
end

local function run(chunk)
  sethook(stop, "", limit)
  local ran, result = pcall(chunk)
  sethook()
  if is_endless then
    tell("endless", format("%.0f", limit))
  elseif not ran then
    tell("stopped", result)
  elseif type(result) == "number" and result ~= 0 then
    tell("returned", format("%.0f", result))
  end
end

local chunk, fault = compile()
if not chunk then
  tell("syntax", fault)
  return concat(found, "\n")
end
limit = tonumber(limit)
run(chunk)
for _, key in ipairs({ "slurm_job_submit", "slurm_job_modify" }) do
  local value = rawget(world, key)
  if type(value) ~= "function" and not rawequal(value, stub) then
    tell("missing", key)
  end
end
for key, value in pairs(options) do
  tell(key, value)
end
return concat(found, "\n")
