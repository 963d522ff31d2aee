std = "min" -- only what Lua 5.1 to 5.4 have in common
read_globals = { "slurm" }
max_line_length = 120
files["**/job_submit.lua"] = { globals = { "slurm_job_submit", "slurm_job_modify" } }
files["**/example_site.lua"] = { globals = { "slurm_job_submit", "slurm_job_modify" } }
