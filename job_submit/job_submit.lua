-- Ready to use as slurm.conf's neighbour job_submit.lua (JobSubmitPlugins=lua) on a cluster that has no other
-- rules of its own. Where there are some: example_site.lua. What it does: slurm_score.lua.
--
-- Whatever goes wrong here, jobs are submitted as if this file weren't there: an error while slurmctld loads it
-- would keep slurmctld from starting, and one that leaves a function below would reject the job.

-- The module from this file's own folder, which needn't be on Lua's path.
local function load_score()
  local folder = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$") or "."
  local path = package.path
  package.path = folder .. "/?.lua;" .. path
  local is_loaded, module = pcall(require, "slurm_score")
  package.path = path
  if not is_loaded then
    error(module, 0)
  end
  assert(module.submit and module.modify, "slurm_score.lua is not whole")
  module.setup({}) -- what differs from the defaults, such as { deadline_s = 0.01 }
  return module
end

local function log_error(what, why)
  pcall(slurm.log_error, "%s", "slurm_score: " .. what .. ": " .. tostring(why))
end

local is_loaded, score = pcall(load_score)
if not is_loaded then
  log_error("not loaded, no job gets a first score", score)
  score = nil
end

-- One function of the module. One that raises, which its own never do, is not called again.
local function call(name, ...)
  if score then
    local ran, why = pcall(score[name], ...)
    if not ran then
      log_error(name .. " failed, no further job gets a first score", why)
      score = nil
    end
  end
  return slurm.SUCCESS
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  return call("submit", job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return call("modify", job_desc, job_rec, part_list, modify_uid)
end

return slurm.SUCCESS
