-- slurm_score: the first score of a job and advice to its user, asked of the scoring service at submission.
--
--   local score = require("slurm_score")
--   score.setup({ socket = "/run/slurm-score/slurm-score.sock" })
--   score.submit(job_desc, part_list, submit_uid)           -- always returns slurm.SUCCESS
--   score.modify(job_desc, job_rec, part_list, modify_uid)  -- the same, and does nothing else
--
-- slurmctld runs this under its locks, one call at a time in the whole controller. So: one deadline over
-- everything, no process, no file, no rejection, and on any doubt the job stays as its user sent it.
-- Lua 5.1 to 5.4. The one need is LuaSocket; without it the module says so once and does nothing.

local http = require("slurm_score_http")
local json = require("slurm_score_json")

local M = { VERSION = "0.1.0" }

-- Submissions so far, by outcome; those that found the breaker open are only in `resting`.
M.counts = { scored = 0, neutral = 0, refused = 0, failed = 0, resting = 0 }

local MAX_SITE_FACTOR = 2147483645 -- the largest that Slurm keeps; more wraps around or means "unset"
local NO_VAL16, NO_VAL, INFINITE = 0xfffe, 0xfffffffe, 0xffffffff -- slurm/slurm.h
local MAX_TEXT = 4096 -- bytes of one field of the request
local MAX_ADVICE_LINES, MAX_LINE = 3, 500 -- lines, bytes
local LOG_EVERY_S = 60

local options = {
  socket = "/run/slurm-score/slurm-score.sock",
  path = "/v1/score",
  deadline_s = 0.02,
  max_reply = 16384, -- bytes of the body; parsing so many takes 2.5 ms, on top of the deadline
  breaker_failures = 3, -- in a row, then
  breaker_pause_s = 10, -- nobody is asked for so long
  cap = MAX_SITE_FACTOR, -- a higher site_factor is refused
  luasocket_path = "", -- goes in front of package.path while LuaSocket is loaded
  luasocket_cpath = "", -- and this in front of package.cpath
}
local RANGES = {
  deadline_s = { 0.001, 0.05 },
  max_reply = { 1, 65536 },
  breaker_failures = { 1, 1000 },
  breaker_pause_s = { 1, 3600 },
  cap = { 0, MAX_SITE_FACTOR },
}

local is_set_up = false
local failures_in_a_row, resting_since = 0, nil -- the breaker
local logged = {} -- kind of line -> { at = when the last one was written, unsaid = how many since }

-- Log -------------------------------------------------------------------------------------------------------

-- One line fit for a terminal or a log: UTF-8, no control characters (ASCII's and Unicode's C1).
local function clean_line(text)
  local line = json.clean_utf8(tostring(text)):gsub("[%z\1-\31\127]", " "):gsub("\194[\128-\159]", " ")
  return json.cut(line, MAX_LINE)
end

local function log(level, text)
  pcall(slurm["log_" .. level], "%s", "slurm_score: " .. clean_line(text))
end

-- At most one line a minute of each kind; the next one says how many were left out.
local function log_seldom(kind, level, text)
  local now, last = http.gettime(), logged[kind]
  local since_s = last and now - last.at
  if since_s and since_s >= 0 and since_s < LOG_EVERY_S then -- below 0: the clock was set back
    last.unsaid = last.unsaid + 1
    return
  end
  if last and last.unsaid > 0 then
    text = text .. " (and " .. string.format("%.0f", last.unsaid) .. " more since the last such line)"
  end
  logged[kind] = { at = now, unsaid = 0 }
  log(level, text)
end

-- Request ---------------------------------------------------------------------------------------------------

local function text(value)
  return type(value) == "string" and json.quote(json.cut(value, MAX_TEXT)) or "null"
end

-- From Lua 5.3 on slurmctld's numbers are floats: "%.0f" prints them whole on every Lua.
local function whole(value, unset)
  local set = type(value) == "number" and value % 1 == 0 and value >= 0 and value < unset
  return set and string.format("%.0f", value) or "null"
end

local function count(value)
  return whole(value, NO_VAL)
end

local function count16(value)
  return whole(value, NO_VAL16)
end

local function minutes(value)
  return value == INFINITE and '"UNLIMITED"' or whole(value, NO_VAL)
end

local function epoch(value) -- 0: the user gave none
  return value == 0 and "null" or whole(value, 2 ^ 53)
end

-- Key in the request, how it is written, field of job_desc, that field's other name.
-- What "unset" is goes by the C type: 65534 tasks are a request, 65534 CPUs for each task are NO_VAL16.
local FIELDS = {
  { "user", text, "user_name" },
  { "account", text, "account" },
  { "default_account", text, "default_account" },
  { "qos", text, "qos" },
  { "default_qos", text, "default_qos" },
  { "partition", text, "partition" },
  { "reservation", text, "reservation" },
  { "name", text, "name" },
  { "comment", text, "comment" },
  { "features", text, "features" },
  { "array", text, "array_inx" },
  { "priority", count, "priority" },
  { "time_limit_min", minutes, "time_limit" },
  { "time_min_min", minutes, "time_min" },
  { "begin_time", epoch, "begin_time" },
  { "min_nodes", count, "min_nodes" },
  { "max_nodes", count, "max_nodes" },
  { "min_cpus", count, "min_cpus" },
  { "num_tasks", count, "num_tasks" },
  { "cpus_per_task", count16, "cpus_per_task" },
  { "ntasks_per_node", count16, "ntasks_per_node" },
  { "tres_per_job", text, "tres_per_job" },
  { "tres_per_node", text, "tres_per_node", "gres" },
  { "tres_per_socket", text, "tres_per_socket" },
  { "tres_per_task", text, "tres_per_task" },
  { "cpus_per_tres", text, "cpus_per_tres" },
  { "het_job_offset", count, "het_job_offset" },
}

local function index(object, key)
  return object[key]
end

-- A field of job_desc; nil where this release of Slurm doesn't know it.
local function read_field(job_desc, name, other_name)
  local is_known, value = pcall(index, job_desc, name)
  if is_known and value ~= nil then
    return value
  end
  return other_name and read_field(job_desc, other_name)
end

local function build_request(job_desc, submit_uid)
  local members = { '"uid":' .. count(submit_uid) }
  for i, field in ipairs(FIELDS) do
    members[i + 1] = '"' .. field[1] .. '":' .. field[2](read_field(job_desc, field[3], field[4]))
  end
  return "{" .. table.concat(members, ",") .. "}"
end

-- Outcome ---------------------------------------------------------------------------------------------------

local function is_resting()
  local since_s = resting_since and http.gettime() - resting_since
  return since_s and since_s >= 0 and since_s < options.breaker_pause_s -- below 0: the clock was set back
end

local function note_failure(why)
  http.hang_up()
  M.counts.failed = M.counts.failed + 1
  failures_in_a_row = failures_in_a_row + 1
  log_seldom("failed", "error", "no score: " .. tostring(why))
  if failures_in_a_row >= options.breaker_failures then
    resting_since = http.gettime()
    local pause = string.format("%.0f s", options.breaker_pause_s)
    log_seldom("resting", "error", "too many failures in a row, nobody is asked for " .. pause)
  end
end

local function note_success()
  if resting_since then
    log_seldom("recovered", "info", "the service answers again")
  end
  failures_in_a_row, resting_since = 0, nil
end

local function apply_site_factor(job_desc, site_factor, reason)
  if site_factor == nil or site_factor == json.NULL then
    M.counts.neutral = M.counts.neutral + 1
    if type(reason) == "string" then
      log_seldom("neutral", "info", "neutral score: " .. reason)
    end
  elseif type(site_factor) == "number" and site_factor % 1 == 0 and site_factor >= 0 and site_factor <= options.cap then
    job_desc.site_factor = site_factor
    M.counts.scored = M.counts.scored + 1
  else
    M.counts.refused = M.counts.refused + 1
    log_seldom("refused", "error", "site_factor refused: " .. tostring(site_factor))
  end
end

local function give_advice(advice)
  for i = 1, type(advice) == "table" and math.min(#advice, MAX_ADVICE_LINES) or 0 do
    if type(advice[i]) == "string" then
      slurm.log_user("%s", clean_line(advice[i]))
    end
  end
end

local function score(job_desc, submit_uid)
  if not is_set_up then
    M.setup()
  end
  if not http.gettime then
    return
  elseif is_resting() then
    M.counts.resting = M.counts.resting + 1
    return
  end
  local timer = http.start_timer()
  local body, why = http.post(build_request(job_desc, submit_uid), timer)
  if not body then
    note_failure(why)
    return
  end
  local reply = json.decode_object(body)
  note_success()
  give_advice(reply.advice)
  apply_site_factor(job_desc, reply.site_factor, reply.reason)
end

-- Set up ----------------------------------------------------------------------------------------------------

local function is_allowed(name, value)
  local range = RANGES[name]
  if type(value) ~= type(options[name]) then
    return false
  elseif range then
    return value >= range[1] and value <= range[2]
  end
  return not value:find("%c")
end

local function set_up(wanted)
  for name, value in pairs(wanted or {}) do
    if is_allowed(name, value) then
      options[name] = value
    else
      log("error", "option " .. tostring(name) .. " is unknown or out of range, left as it was")
    end
  end
  local has_luasocket, why = http.setup(options)
  if has_luasocket then
    log("info", "version " .. M.VERSION .. " on " .. _VERSION .. ", asks " .. options.socket)
  else
    log("error", "no LuaSocket for " .. _VERSION .. ", so no first score at submission: " .. tostring(why))
  end
end

-- Takes the options that differ from the defaults above. Called once, when slurmctld loads the script.
function M.setup(wanted)
  is_set_up = true
  local ran, why = pcall(set_up, wanted)
  if not ran then
    log("error", "setup: " .. tostring(why))
  end
end

-- For slurm_job_submit: sets job_desc.site_factor and tells the user the service's advice, or changes nothing.
function M.submit(job_desc, _, submit_uid)
  local ran, why = pcall(score, job_desc, submit_uid)
  if not ran then
    pcall(note_failure, why)
  end
  return slurm.SUCCESS
end

-- For slurm_job_modify: slurmctld calls it for every update, slurm-score's own among them, with the job and node
-- write locks held. A question to the service here could wait for the very process that waits for slurmctld.
function M.modify()
  return slurm.SUCCESS
end

return M
