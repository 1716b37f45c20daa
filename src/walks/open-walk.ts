import type { Transaction } from '../db/transaction.js';
import { fenced, holdList, type ListKey } from '../mirror/list-fence.js';
import type { ReceivedKeys } from './pass-memory.js';
import type { Reference } from './reference.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';

/** A walk that this worker has taken: nobody else can write to its list until somebody takes it again. */
export interface OpenWalk {
  readonly id: string;
  readonly runId: string;
  readonly list: ListKey;
  readonly epoch: bigint;
  /** The record member that is the id, once a page has shown it. */
  idField?: string;
  /** The list was seen in another order than in an earlier walk. */
  unstable: boolean;
  readonly pass: number;
  /** Pages that it has committed. The database must know them too: one that crashed or was replaced by its replica may have lost some. */
  pages: number;
  /** Undefined = from the start. */
  readonly checkpoint?: WalkCheckpoint;
  readonly memory: ReceivedKeys;
  /** Of a child list: the walk that had proved the parents when this one was opened; undefined when none had. */
  readonly parentsWalkId?: string;
  /** Whether the mirror holds nothing of the list but what this pass has received. */
  fillsEmptyList: boolean;
  /** What need not be compared with the mirror, as long as this pass receives every record with one text. */
  readonly reference?: Reference | undefined;
}

/** Holds the list, and the walk with it: neither was taken by another worker, and the run was not ended behind our back. */
export async function holdWalk(tx: Transaction, { id, list, epoch, pages }: OpenWalk): Promise<void> {
  await holdList(tx, list, epoch);
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT 1 FROM muster.walks WHERE id = ${id}::uuid AND epoch = ${epoch} AND status = 'running' AND pages = ${pages} FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'the walk has ended or stands elsewhere');
}
