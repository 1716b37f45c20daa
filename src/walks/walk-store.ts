import type { Endpoint } from '../catalogue/endpoint.js';
import { fingerprint } from '../catalogue/fingerprint.js';
import type { Clock } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import { type ErrorView, MusterError } from '../core/errors.js';
import type { Database } from '../db/database.js';
import { sqlState } from '../db/sql-state.js';
import { lockRun, type RunClaim } from '../db/tables/runs.js';
import { inTransaction, type Transaction } from '../db/transaction.js';
import { fenced, holdList, type ListKey, takeList } from '../mirror/list-fence.js';
import { movedRecords } from '../mirror/list-order.js';
import { isEmptyList, mirrorTable } from '../mirror/mirror-table.js';
import type { PageToWrite } from '../mirror/page-values.js';
import { type WalkWrite, writePages } from '../mirror/page-writer.js';
import type { ReceivedPage } from '../pagers/envelope.js';
import { readLedger } from './ledger.js';
import { holdWalk, type OpenWalk } from './open-walk.js';
import { digestToken, ReceivedKeys } from './pass-memory.js';
import { provedParents } from './proved-parents.js';
import { findReference, readReference } from './reference.js';
import { CHECKPOINT_MAX_AGE_MS, type WalkCheckpoint } from './walk-checkpoint.js';
import { endWalk, type WalkOutcome } from './walk-end.js';

/** A page that counts. */
export interface CountedPage {
  readonly page: ReceivedPage;
  /** Its number within the ledger of its pass, from 0. */
  readonly number: number;
  /** Position from which on none of its records was received before in this pass. */
  readonly newFrom: number;
}

/** Pages in a row, with the state to go on from behind them. */
export interface PagesToCommit {
  readonly pages: readonly CountedPage[];
  readonly checkpoint: WalkCheckpoint;
}

const UNIQUE_VIOLATION = '23505';

/** Opening, committing and ending walks in the database. Every write holds the list first. */
export class WalkStore {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /**
   * Takes the walk's list, and reads where the walk stood. A checkpoint of another catalogue entry, or too old, is
   * dropped with its ledger: the walk begins anew. Throws `fenced` when the run is not ours any more, `rekey_required`
   * when the catalogue would name the list's records by another member.
   */
  async open(
    walk: { readonly id: string; readonly run: RunClaim & { readonly company: CompanyKey } },
    endpoint: Endpoint,
    countAsResumed: boolean,
  ): Promise<OpenWalk> {
    const { id, run } = walk;
    const list = { ...run.company, resource: endpoint.resource };
    const { referenceId, ...opened } = await inTransaction(this.#db, async (tx) => {
      const { epoch, idField, unstableSince } = await takeList(tx, list, run.id);
      const { trigger, mode } = await lockRun(tx, run);
      const row = await tx.walk.findUniqueOrThrow({ where: { id } });
      if (row.status === 'succeeded') throw fenced(list, 'the walk has ended');
      if (idField !== null && !endpoint.id.includes(idField)) throw rekeyRequired(list, idField, endpoint);
      const parents = endpoint.parent === undefined ? undefined : await provedParents(tx, list, endpoint.parent);
      const kept = row.checkpoint as unknown as WalkCheckpoint | null;
      const usable =
        kept !== null &&
        row.fingerprint === fingerprint(endpoint) &&
        row.checkpointAt!.getTime() > this.#clock.now() - CHECKPOINT_MAX_AGE_MS &&
        // Parents that have come since may stand before the one that is read, and would never be asked for.
        (!parents || kept.parent?.parentsWalkId === parents.walkId);
      // A walk that took another one over has its ledger, too.
      if (!usable && row.fingerprint !== null) await forgetPass(tx, id);
      // Nobody took the list since this walk had it, or since the walk that it may go by.
      const unbroken = row.epoch === epoch - 1n ? row.referenceWalkId : null;
      // A person who asks for everything anew wants every record compared, whatever earlier walks have proved.
      const mayRefer = endpoint.parent === undefined && !(trigger === 'manual' && mode === 'full');
      const reference = usable ? unbroken : mayRefer ? await findReference(tx, list, epoch, endpoint) : null;
      // Other passes over a parent's list count as one with the first.
      const mayBeEmpty = endpoint.parent === undefined && reference === null;
      const startedEmpty = usable ? row.startedEmpty : mayBeEmpty && (await isEmptyList(tx, list));
      // Passes by the database's clock: last_verified_at is compared with other times that it made.
      await tx.$executeRaw`
        UPDATE muster.walks
        SET status = 'running', epoch = ${epoch}, fingerprint = ${fingerprint(endpoint)}, reference_walk_id = ${reference}::uuid,
          error = NULL, started_at = COALESCE(started_at, ${new Date(this.#clock.now())}), resumed = resumed OR ${usable && countAsResumed},
          started_empty = ${startedEmpty}, pass_started_at = CASE WHEN ${usable} THEN pass_started_at ELSE now() END
        WHERE id = ${id}::uuid`;
      const pass = usable ? row.pass : 1;
      return {
        id,
        runId: run.id,
        list,
        epoch,
        pass,
        pages: row.pages,
        referenceId: pass === 1 ? reference : null,
        fillsEmptyList: startedEmpty && pass === 1,
        unstable: unstableSince !== null,
        ...(idField !== null && { idField }),
        ...(usable && { checkpoint: kept }),
        ...(parents && { parentsWalkId: parents.walkId }),
      };
    });
    // Behind the transaction: from here on nobody else writes to these walks without ending ours.
    const { checkpoint } = opened;
    const known = referenceId === null ? undefined : await readReference(this.#db, list, referenceId);
    const memory = checkpoint ? await readLedger(this.#db, id, checkpoint) : new ReceivedKeys(known?.trail);
    return { ...opened, memory, reference: known?.reference };
  }

  /**
   * Pages, their ledger rows and the checkpoint behind them: all or nothing. `onSent` is called once the database works on them: from
   * then on the walk's memory may take in further pages.
   */
  async commitPages(walk: OpenWalk, commit: PagesToCommit, onSent?: () => void): Promise<void> {
    const write = writeOf(walk, commit);
    try {
      await this.#commitPages(walk, commit, write, onSent);
    } catch (error) {
      if (!walk.fillsEmptyList || sqlState(error) !== UNIQUE_VIOLATION) throw error;
      // Somebody put records into the mirror by hand.
      walk.fillsEmptyList = false;
      await this.#db.prisma.walk.update({ where: { id: walk.id }, data: { startedEmpty: false } });
      await this.#commitPages(walk, commit, write);
    }
  }

  async #commitPages(walk: OpenWalk, { pages }: PagesToCommit, write: WalkWrite, onSent?: () => void): Promise<void> {
    const { page: last } = pages.at(-1)!;
    const newIdField = walk.idField === undefined ? last.idField : undefined;
    await inTransaction(this.#db, async (tx) => {
      await holdList(tx, walk.list, walk.epoch, 'force_generic_plan');
      if (newIdField !== undefined) {
        // Fixed from now on.
        await tx.list.update({ where: { environment_companyId_resource: walk.list }, data: { idField: newIdField } });
      }
      const toWrite: PageToWrite[] = [];
      for (const page of pages) toWrite.push(pageToWrite(page, walk.fillsEmptyList));
      await writePages(tx, write, toWrite, onSent);
    });
    walk.pages += pages.length;
    if (newIdField !== undefined) walk.idField = newIdField;
  }

  /**
   * Begins the next pass from the start of the list, with an empty ledger of its own. In a walk over many parents, another
   * pass over the present parent's list: the pass stays, and only this parent's pages leave the ledger.
   */
  async beginPass(walk: OpenWalk, pass: number, checkpoint: WalkCheckpoint): Promise<OpenWalk> {
    const { parent } = checkpoint;
    await inTransaction(this.#db, async (tx) => {
      await holdWalk(tx, walk);
      await tx.walkPage.deleteMany({
        where: parent ? { walkId: walk.id, page: { gte: parent.firstPage } } : { walkId: walk.id, pass: { lt: pass } },
      });
      await tx.$executeRaw`
        UPDATE muster.walks SET pass = ${pass}, checkpoint = ${JSON.stringify(checkpoint)}::jsonb, checkpoint_at = now(),
          received = ${parent?.received ?? 0}, duplicates = ${parent?.duplicates ?? 0}
        WHERE id = ${walk.id}::uuid`;
      if (!parent) {
        await tx.$executeRaw`UPDATE muster.walks SET pass_started_at = now(), rejected = 0 WHERE id = ${walk.id}::uuid`;
        await tx.rejectedRecord.deleteMany({ where: { walkId: walk.id, pass: { lt: pass } } });
      }
    });
    return { ...walk, pass, checkpoint, memory: new ReceivedKeys(), fillsEmptyList: false, reference: undefined };
  }

  /**
   * Looks whether the list stands in another order than in its last verified walk. If so, its order cannot be relied on any
   * more, and that is kept with the list.
   */
  async noteOrder(walk: OpenWalk): Promise<void> {
    if (!(await movedRecords(this.#db.prisma, walk.list, { walkId: walk.id, pass: walk.pass }))) return;
    await inTransaction(this.#db, async (tx) => {
      await holdWalk(tx, walk);
      await tx.list.update({
        where: { environment_companyId_resource: walk.list },
        data: { unstableSince: new Date(this.#clock.now()) },
      });
    });
    walk.unstable = true;
  }

  /** The living parent that follows in the order of ids; the first one without `after`. */
  async parentAfter({ list }: OpenWalk, resource: string, after = ''): Promise<string | undefined> {
    const [row] = await this.#db.prisma.$queryRawUnsafe<{ id: string }[]>(
      `SELECT id FROM ${mirrorTable(resource)} WHERE environment = $1 AND company_id = $2::uuid AND id > $3 AND deleted_at IS NULL
       ORDER BY id LIMIT 1`,
      list.environment,
      list.companyId,
      after,
    );
    return row?.id;
  }

  /** Ends a walk that read its list to the end. Only a verified one deletes. */
  async finish(walk: OpenWalk, proved: WalkOutcome, endpoint: Endpoint): Promise<void> {
    await inTransaction(this.#db, (tx) => endWalk(tx, walk, proved, endpoint, this.#clock.now()));
  }

  /**
   * The walk stopped at an error. Its checkpoint stays for the next attempt, unless going on from there would only lead to
   * the same error: `anew`.
   */
  async fail(walk: { readonly id: string; readonly run: RunClaim }, error: ErrorView, anew: boolean) {
    await inTransaction(this.#db, async (tx) => {
      await lockRun(tx, walk.run);
      const failed = await tx.walk.updateMany({
        where: { id: walk.id, status: { not: 'succeeded' } },
        data: { status: 'failed', error: { ...error } },
      });
      if (failed.count > 0 && anew) await forgetPass(tx, walk.id);
    });
  }
}

/** Back to the beginning of the walk: without a checkpoint the ledger means nothing. */
async function forgetPass(tx: Transaction, id: string): Promise<void> {
  await tx.walkPage.deleteMany({ where: { walkId: id } });
  await tx.rejectedRecord.deleteMany({ where: { walkId: id } });
  await tx.$executeRaw`
    UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL, pass = 1, received = 0, duplicates = 0, rejected = 0
    WHERE id = ${id}::uuid`;
}

function writeOf(walk: OpenWalk, { pages, checkpoint }: PagesToCommit): WalkWrite {
  const { parent } = checkpoint;
  const { total } = pages.at(-1)!.page;
  return {
    list: walk.list,
    epoch: walk.epoch,
    runId: walk.runId,
    walkId: walk.id,
    pagesBefore: walk.pages,
    pass: walk.pass,
    checkpoint,
    received: (parent?.received ?? 0) + walk.memory.size,
    duplicates: (parent?.duplicates ?? 0) + checkpoint.duplicates,
    ...(total !== undefined && !parent && { total }),
  };
}

function pageToWrite({ page, number, newFrom }: CountedPage, fillsEmptyList: boolean): PageToWrite {
  const tokenDigest = page.nextToken === undefined ? undefined : digestToken(page.nextToken);
  return { page, number, newFrom: fillsEmptyList ? newFrom : undefined, tokenDigest };
}

function rekeyRequired({ resource }: ListKey, idField: string, { id }: Endpoint): MusterError {
  return new MusterError(
    'rekey_required',
    `The records of ${resource} are kept under their ${idField}, but the catalogue now names them by ${id.join(' or ')}. ` +
      `Put ${idField} back into the catalogue, or give up the old ids: muster rekey.`,
    { details: { resource, id_field: idField } },
  );
}
