-- A job_submit.lua of a site with rules of its own, and slurm-score in one line each. Replace the rules.

package.path = "/etc/slurm/?.lua;" .. package.path -- where slurm_score*.lua are
local has_score, score = pcall(require, "slurm_score")
if not has_score then
  slurm.log_error("%s", "slurm_score: not loaded, no job gets a first score: " .. tostring(score))
end

function slurm_job_submit(job_desc, part_list, submit_uid)
  if job_desc.account == nil and job_desc.default_account == nil then
    slurm.log_user("Please say which account pays for the job: sbatch --account=NAME")
    return slurm.ERROR
  end
  if has_score then pcall(score.submit, job_desc, part_list, submit_uid) end -- last: it scores what the rules left
  return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  if has_score then pcall(score.modify, job_desc, job_rec, part_list, modify_uid) end
  return slurm.SUCCESS
end

return slurm.SUCCESS
