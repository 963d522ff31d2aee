-- slurm_score: the first score of a job and advice to its user, asked of the scoring service at submission.
--
--   local score = require("slurm_score")
--   score.setup({ socket = "/run/slurm-score/hook.sock" })
--   score.submit(job_desc, part_list, submit_uid)           -- always returns slurm.SUCCESS
--   score.modify(job_desc, job_rec, part_list, modify_uid)  -- the same, and does nothing else
--
-- slurmctld runs this under its locks, one call at a time in the whole controller. So: one deadline over
-- everything, no process, no file, no rejection, and on any doubt the job stays as its user sent it.
-- Lua 5.1 to 5.4. The one need is LuaSocket; without it the module says so once and does nothing.

local http = require("slurm_score_http")
local json = require("slurm_score_json")
local request = require("slurm_score_request")

local M = { VERSION = "0.1.0" }

-- Submissions so far, by outcome; those that found the breaker open are only in `resting`.
M.counts = { scored = 0, neutral = 0, refused = 0, failed = 0, resting = 0 }

local OUTCOMES = { "scored", "neutral", "refused", "failed", "resting" } -- in the order of the log
local MAX_SITE_FACTOR = 2147483645 -- the largest that Slurm keeps; more wraps around or means "unset"
local MAX_ADVICE_LINES, MAX_LINE = 3, 500 -- lines, bytes
local MAX_ADMIN_COMMENT = 1000 -- bytes, with what stood there before
local MAX_KNOWN_REPLIES, MAX_KNOWN_REPLY = 64, 1024 -- replies, bytes of one
local LOG_EVERY_S = 60
local LOADED_S = os.time()

local options = {
  socket = "/run/slurm-score/hook.sock",
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
local is_unsaid_recovery = false -- the service answers again, and the log doesn't have it yet
local logged_at = nil -- when the last line about a submission was written
local replies, reply_count = {}, 0 -- decoded, by their text: most submissions get the answer of an earlier one

-- Log -------------------------------------------------------------------------------------------------------

-- Fit for a terminal or a log: UTF-8, no control characters (ASCII's and Unicode's C1).
local function clean(text)
  return (json.clean_utf8(tostring(text)):gsub("[%z\1-\31\127]", " "):gsub("\194[\128-\159]", " "))
end

local function clean_line(text)
  return json.cut(clean(text), MAX_LINE)
end

local function log(level, text, ending)
  pcall(slurm["log_" .. level], "%s", "slurm_score: " .. clean_line(text) .. (ending or ""))
end

-- How many submissions ended in which way since the module was loaded.
local function tally()
  local parts = {}
  for i, outcome in ipairs(OUTCOMES) do
    parts[i] = outcome .. "=" .. string.format("%.0f", M.counts[outcome])
  end
  return " [" .. table.concat(parts, " ") .. "]"
end

-- At most one line a minute about submissions, whatever it says; its tally has what the others would have said.
-- Whether it was written.
local function log_seldom(level, text, ending)
  local now = http.gettime()
  local since_s = logged_at and now - logged_at
  if since_s and since_s >= 0 and since_s < LOG_EVERY_S then -- below 0: the clock was set back
    return false
  end
  logged_at = now
  log(level, text, (ending or "") .. tally())
  return true
end

-- Who asks, and how many submissions passed without an answer: the service shows the numbers to those who watch.
local function user_agent()
  local counts = M.counts
  return string.format(
    "slurm_score.lua/%s (%s; loaded %.0f; failed %.0f; resting %.0f)",
    M.VERSION, _VERSION, LOADED_S, counts.failed, counts.resting
  )
end

-- Outcome ---------------------------------------------------------------------------------------------------

local function is_resting()
  local since_s = resting_since and http.gettime() - resting_since
  return since_s and since_s >= 0 and since_s < options.breaker_pause_s -- below 0: the clock was set back
end

local function note_failure(why)
  M.counts.failed = M.counts.failed + 1
  failures_in_a_row = failures_in_a_row + 1
  local ending = ""
  if failures_in_a_row >= options.breaker_failures then
    resting_since = http.gettime()
    ending = string.format("; nobody is asked for %.0f s", options.breaker_pause_s)
  end
  http.hang_up()
  log_seldom("error", "no score: " .. tostring(why), ending)
end

local function note_success()
  is_unsaid_recovery = is_unsaid_recovery or resting_since ~= nil
  failures_in_a_row, resting_since = 0, nil
  if is_unsaid_recovery and log_seldom("info", "the service answers again") then
    is_unsaid_recovery = false
  end
end

-- Whether the answer is one: a site_factor that Slurm can keep, which is written, or none.
local function apply_site_factor(job_desc, site_factor, reason)
  if site_factor == nil or site_factor == json.NULL then
    M.counts.neutral = M.counts.neutral + 1
    if type(reason) == "string" then
      log_seldom("info", "neutral score: " .. reason)
    end
    return true
  elseif type(site_factor) == "number" and site_factor % 1 == 0 and site_factor >= 0 and site_factor <= options.cap then
    job_desc.site_factor = site_factor
    M.counts.scored = M.counts.scored + 1
    return true
  end
  M.counts.refused = M.counts.refused + 1
  log_seldom("error", "site_factor refused: " .. tostring(site_factor))
  return false
end

local function give_advice(advice)
  for i = 1, type(advice) == "table" and math.min(#advice, MAX_ADVICE_LINES) or 0 do
    if type(advice[i]) == "string" then
      slurm.log_user("%s", clean_line(advice[i]))
    end
  end
end

-- Puts the note behind what stands in admin_comment, in the place of an earlier note of ours: that one told of a
-- site_factor which the job no longer has. Nothing else of it is touched, and what gets too long stays as it was.
local function add_note(job_desc, note)
  if type(note) ~= "string" or note == "" then
    return
  end
  local others = (";" .. (job_desc.admin_comment or "")):gsub(";%s*slurm%-score:[^;]*", ""):sub(2)
  local whole = others .. (others == "" and "" or ";") .. clean(note):gsub(";", ",")
  if #whole <= MAX_ADMIN_COMMENT then
    job_desc.admin_comment = whole
  end
end

-- What comes after the score and must not cost it.
local function try(what, work, ...)
  local ran, why = pcall(work, ...)
  if not ran then
    log_seldom("error", what .. ": " .. tostring(why))
  end
end

local function decode(body)
  local reply = replies[body]
  if reply then
    return reply
  end
  reply = json.decode_object(body)
  if #body <= MAX_KNOWN_REPLY then
    if reply_count >= MAX_KNOWN_REPLIES then
      replies, reply_count = {}, 0
    end
    replies[body], reply_count = reply, reply_count + 1
  end
  return reply
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
  local body, why = http.post(request.build(job_desc, submit_uid), user_agent(), timer)
  if not body then
    note_failure(why)
    return
  end
  local reply = decode(body)
  local is_answer = apply_site_factor(job_desc, reply.site_factor, reply.reason)
  note_success()
  if is_answer then
    try("admin_comment left as it was", add_note, job_desc, reply.admin_comment)
  end
  try("advice not shown", give_advice, reply.advice)
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
