#!/bin/bash
# A batch as a job array: sbatch --array=0-244%50 slurm.sh JOB. docs/batch-slurm.md explains it.
#SBATCH --job-name=locdiff-batch
#SBATCH --cpus-per-task=4
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --output=locdiff-batch-%A_%a.log
set -euo pipefail
job=${1:?the job: a directory that all nodes see, or s3://bucket/prefix}
units=${UNITS_PER_TASK:-100}
first=$((SLURM_ARRAY_TASK_ID * units))
# Threads follow --cpus-per-task.
exec locdiff batch run-unit "$job" "$first-$((first + units - 1))"
