import { type CompanyKey, describeCompany } from '../core/company.js';
import { MusterError } from '../core/errors.js';
import type { Transaction } from '../db/transaction.js';

/** One list of one company: what is walked, written and fenced as a whole. */
export interface ListKey extends CompanyKey {
  readonly resource: string;
}

export interface TakenList {
  /** Under which its holder writes. */
  readonly epoch: bigint;
  /** The record member that is the id, once a walk has fixed it. */
  readonly idField: string | null;
  /** Since when the list is known to change its order. */
  readonly unstableSince: Date | null;
}

/**
 * Takes the list for a walk: from here on every earlier holder's writes fail. A company that was removed has no list to
 * take, so that a slow worker cannot bring it back.
 */
export async function takeList(tx: Transaction, list: ListKey, runId: string): Promise<TakenList> {
  const rows = await tx.$queryRaw<TakenList[]>`
    INSERT INTO muster.lists AS l (environment, company_id, resource, epoch, last_run_id)
    SELECT c.environment, c.company_id, ${list.resource}, 1, ${runId}::uuid
    FROM (SELECT environment, company_id FROM muster.connections
          WHERE environment = ${list.environment} AND company_id = ${list.companyId}::uuid FOR SHARE) c
    ON CONFLICT (environment, company_id, resource) DO UPDATE SET epoch = l.epoch + 1, last_run_id = EXCLUDED.last_run_id
    RETURNING epoch, id_field AS "idField", unstable_since AS "unstableSince"`;
  const [row] = rows;
  if (!row) throw fenced(list, 'the company was removed');
  return row;
}

/**
 * The first statement of everything that writes to a list's rows: holds the list until the transaction ends, or throws
 * `fenced` when somebody else has taken it since. A statement of its own, because a statement that waits for the lock
 * goes on with the snapshot it had before. What follows is planned once and its plan kept (statement-names.ts): a plan made while
 * the list's table was small must not scan all of it once it is large. `force_generic_plan` is for a statement that is long to plan, and
 * whose plan does not depend on its values: PostgreSQL would plan it five times a connection before it keeps a plan.
 */
export async function holdList(
  tx: Transaction,
  list: ListKey,
  epoch: bigint,
  plans: 'auto' | 'force_generic_plan' = 'auto',
): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', ${plans}, true) FROM muster.lists
    WHERE environment = ${list.environment} AND company_id = ${list.companyId}::uuid AND resource = ${list.resource} AND epoch = ${epoch}
    FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'another worker has taken it over');
}

/** The error of a worker that may not write to the list any more. */
export function fenced(list: ListKey, why: string): MusterError {
  return new MusterError('fenced', `The list ${list.resource} of ${describeCompany(list)} is no longer ours to write: ${why}.`);
}
