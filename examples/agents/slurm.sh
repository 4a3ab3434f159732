#!/bin/sh
#SBATCH --job-name=stepladder-agents
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
# sbatch --export=NATS_URL=nats://10.0.0.1:4222 examples/agents/slurm.sh
# Then, where the broker is reached: stepladder climb … --nats "$NATS_URL" --agents 4
ulimit -n "$(ulimit -Hn)"
exec srun --kill-on-bad-exit=0 sh -c 'exec stepladder agent --nats "$NATS_URL" --name "$(hostname)"'
