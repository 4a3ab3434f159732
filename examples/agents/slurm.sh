#!/bin/bash
#SBATCH --job-name=stepladder-agents
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
# sbatch --export=ALL,NATS_URL=nats://10.0.0.1:4222 examples/agents/slurm.sh
# Then, where the broker is reached: stepladder climb … --nats "$NATS_URL" --agents 4
: "${NATS_URL:?give the broker: sbatch --export=ALL,NATS_URL=nats://HOST:4222 $0}"
ulimit -n "$(ulimit -Hn)"
# One task per node. A task that ends does not end the others.
# shellcheck disable=SC2016 # each task fills in its own
exec srun --kill-on-bad-exit=0 sh -c 'exec stepladder agent --nats "$NATS_URL" --name "$(hostname)-$SLURM_PROCID"'
