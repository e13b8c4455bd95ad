#!/bin/sh
# Workers for `forkhestra task run --on workers`, written by `forkhestra task export slurm`. Start them with
# `sbatch FILE`. Each job works on one unit after the other until none is waiting. A job that Slurm requeues continues
# what it had begun.
#SBATCH --job-name=forkhestra-workers
#SBATCH --array=1-@JOBS@
#SBATCH --requeue
#SBATCH --export=NONE
#SBATCH --signal=B:TERM@60
#SBATCH --chdir=/
#SBATCH --output=/tmp/forkhestra-%u.log
#SBATCH --open-mode=append
exec forkhestra work --next --all@LABELS@ --hub @HUB@ --as "slurm-$SLURM_ARRAY_JOB_ID-$SLURM_ARRAY_TASK_ID"
