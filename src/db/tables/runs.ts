// muster.runs: one sync of one company.
import { MusterError } from '../../core/errors.js';
import type { Transaction } from '../transaction.js';

/** A claim on a run: `epoch` names it, and a later claim by anyone ends it. */
export interface RunClaim {
  readonly id: string;
  readonly epoch: bigint;
}

/**
 * Locks the run until the transaction ends, or throws `fenced` when the run is over or somebody else has claimed it since. Without the
 * lock, a worker that was frozen could begin, on waking, a walk that its successor has finished.
 */
export async function lockRun(
  tx: Transaction,
  { id, epoch }: RunClaim,
): Promise<{ readonly trigger: string; readonly mode: string }> {
  const [row] = await tx.$queryRaw<{ trigger: string; mode: string }[]>`
    SELECT trigger, mode FROM muster.runs WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running' FOR SHARE`;
  if (!row) throw new MusterError('fenced', `The run ${id} is no longer ours: another worker claimed it, or it is over.`);
  return row;
}
