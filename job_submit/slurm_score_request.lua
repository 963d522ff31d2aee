-- slurm_score_request: what the scoring service is told of a job, in Lua 5.1 to 5.4.
--
-- Only what a score may depend on; never the script, its arguments or the environment.

local json = require("slurm_score_json")

local M = {}

local NO_VAL16, NO_VAL, INFINITE = 0xfffe, 0xfffffffe, 0xffffffff -- slurm/slurm.h
local MAX_WHOLE = 2 ^ 53 -- from here on a double, Lua's number, skips whole numbers; NO_VAL64 lies above
local MAX_TEXT = 4096 -- bytes of one field

-- How a field is written ------------------------------------------------------------------------------------

-- Free text: what is too long ends early.
local function words(value)
  return type(value) == "string" and json.quote(json.cut(value, MAX_TEXT)) or "null"
end

-- A name or a list, which half of would be another one: what is too long is left out.
local function text(value)
  return type(value) == "string" and #value <= MAX_TEXT and json.quote(value) or "null"
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
  return value == 0 and "null" or whole(value, MAX_WHOLE)
end

local function mebibytes(value) -- 0: all memory of a node
  return whole(value, MAX_WHOLE)
end

local function flag(value)
  return type(value) == "boolean" and tostring(value) or "null"
end

-- Key in the request, how it is written, field of job_desc, that field's other name.
-- What "unset" is goes by the C type: 65534 tasks are a request, 65534 CPUs for each task are NO_VAL16.
-- pn_min_memory is not here: its highest bit says "for each CPU", and Lua's number loses one or the other.
local FIELDS = {
  { "user", text, "user_name" },
  { "account", text, "account" },
  { "default_account", text, "default_account" },
  { "qos", text, "qos" },
  { "default_qos", text, "default_qos" },
  { "partition", text, "partition" },
  { "reservation", text, "reservation" },
  { "name", words, "name" },
  { "comment", words, "comment" },
  { "features", text, "features" },
  { "prefer", text, "prefer" },
  { "req_nodes", text, "req_nodes" },
  { "exc_nodes", text, "exc_nodes" },
  { "licenses", text, "licenses" },
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
  { "mem_per_node_mib", mebibytes, "min_mem_per_node" },
  { "mem_per_cpu_mib", mebibytes, "min_mem_per_cpu" },
  { "tres_per_job", text, "tres_per_job" },
  { "tres_per_node", text, "tres_per_node", "gres" },
  { "tres_per_socket", text, "tres_per_socket" },
  { "tres_per_task", text, "tres_per_task" },
  { "cpus_per_tres", text, "cpus_per_tres" },
  { "mem_per_tres", text, "mem_per_tres" },
  { "het_job_offset", count, "het_job_offset" },
  { "cron_job", flag, "cron_job" },
}

-- What doesn't change of a member, written once: slurmctld waits while a request is put together.
for _, field in ipairs(FIELDS) do
  field.key = '"' .. field[1] .. '":'
  field.null = field.key .. "null"
end

-- The request -----------------------------------------------------------------------------------------------

local function index(object, key)
  return object[key]
end

-- A field of job_desc; nil where reading it raises.
local function index_safely(object, key)
  local is_known, value = pcall(index, object, key)
  if is_known then
    return value
  end
  return nil
end

-- The body of the request, one JSON object.
local function write(job_desc, submit_uid, read)
  local members = { '"uid":' .. count(submit_uid) }
  for i, field in ipairs(FIELDS) do
    local value = read(job_desc, field[3])
    if value == nil and field[4] then
      value = read(job_desc, field[4])
    end
    members[i + 1] = value == nil and field.null or field.key .. field[2](value)
  end
  return "{" .. table.concat(members, ",") .. "}"
end

-- slurmctld answers nil for a field that this release of Slurm doesn't know, without a line in its log (only
-- writing one makes a line). Should one raise after all, each is read by itself, and that one is null.
function M.build(job_desc, submit_uid)
  local ran, body = pcall(write, job_desc, submit_uid, index)
  return ran and body or write(job_desc, submit_uid, index_safely)
end

return M
