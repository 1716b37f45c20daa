import type { Environment } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { deleteGoneRows } from './reconcile.js';

/** Decisions on deletions that the mass-deletion guard held back. */
export class Holds {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Deletes what the hold's walk lacked. Only while that walk is the newest of its list: a walk begun since, even one
   * that was cancelled half-way, may have seen some of the rows again. Throws hold_not_found, hold_not_open.
   */
  async approve(id: string): Promise<void> {
    await inTransaction(this.#db, async (tx) => {
      const { environment, companyId, resource, runId, walkId } = await findHold(tx, id);
      const list = { environment: environment as Environment, companyId, resource };
      // The list first, as walks do: the other order could deadlock with one that closes this hold.
      const [walk] = await tx.$queryRaw<{ pass: number; epoch: bigint; newest: bigint }[]>`
        SELECT w.pass, w.epoch, l.epoch AS newest FROM muster.lists l JOIN muster.walks w ON w.id = ${walkId}::uuid
        WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource} FOR UPDATE OF l`;
      await lockOpenHold(tx, id);
      if (!walk || walk.epoch !== walk.newest) {
        throw new MusterError(
          'hold_not_open',
          `A newer walk of ${resource} has begun: when it ends verified, it replaces or closes this hold. Decide then.`,
        );
      }
      await deleteGoneRows(tx, { list, runId, walkId, pass: walk.pass });
      await close(tx, id, 'approved');
    });
  }

  /** Keeps the rows; the next verified walk that still lacks them opens a new hold. Throws hold_not_found, hold_not_open. */
  async reject(id: string): Promise<void> {
    await inTransaction(this.#db, async (tx) => {
      await lockOpenHold(tx, id);
      await close(tx, id, 'rejected');
    });
  }
}

async function findHold(tx: Transaction, id: string) {
  const hold = await tx.hold.findUnique({ where: { id } });
  if (!hold) throw new MusterError('hold_not_found', `There is no hold ${id}: GET /api/holds lists them.`);
  return hold;
}

async function lockOpenHold(tx: Transaction, id: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM muster.holds WHERE id = ${id}::uuid FOR UPDATE`;
  const { status } = await findHold(tx, id);
  if (status !== 'open') throw new MusterError('hold_not_open', `The hold ${id} is ${status} already.`);
}

async function close(tx: Transaction, id: string, status: 'approved' | 'rejected'): Promise<void> {
  await tx.hold.update({ where: { id }, data: { status, closedAt: new Date() } });
}
