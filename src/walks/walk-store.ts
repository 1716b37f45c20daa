import type { Endpoint } from '../catalogue/endpoint.js';
import { fingerprint } from '../catalogue/fingerprint.js';
import type { Clock } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import { type ErrorView, MusterError } from '../core/errors.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { Database } from '../db/connection/database.js';
import { sqlState } from '../db/connection/sql-state.js';
import { wasRolledBack } from '../db/connection/step.js';
import { inTransaction, type Transaction } from '../db/connection/transaction.js';
import type { OwnQuietHours } from '../db/tables/connections.js';
import { forgetPages, hasMovedRecords, readReceived } from '../db/tables/ledger.js';
import { fenced, findIdField, findProof, type ListKey, recordUnstable } from '../db/tables/lists.js';
import { lockRun, type RunClaim } from '../db/tables/runs.js';
import { type OpenedWalk, openWalk, type WalkOpening } from '../db/tables/walk-opening.js';
import {
  failWalk,
  lockWalk,
  recordForeignRecords,
  recordStartedEmpty,
  resetWalk,
  startPass,
  type WalkClaim,
} from '../db/tables/walks.js';
import { redactStored, storedRules } from '../erasure/redact-stored.js';
import { firstVisibleId, isEmptyList } from '../mirror/mirror-table.js';
import type { WalkWrite } from '../mirror/page-parameters.js';
import { writePages } from '../mirror/page-writer.js';
import type { WorkMetrics } from '../observability/work-metrics.js';
import type { Suppressions } from '../privacy/suppressions.js';
import { type Comparisons, compareEverything } from './comparison.js';
import { leaveOut } from './leave-out.js';
import { ATTEMPTS_BEFORE_ANY_WORDS, type OpenWalk } from './open-walk.js';
import { type CountedPage, type PagesToCommit, pageToWrite, writeOf } from './pages-to-commit.js';
import { PassMemory } from './pass-memory.js';
import type { ReceivedPage } from './received-page.js';
import { CHECKPOINT_MAX_AGE_MS, type WalkCheckpoint } from './walk-checkpoint.js';
import { endWalk, PARENTS_MAX_AGE_MS, type WalkEnding } from './walk-end.js';

const UNIQUE_VIOLATION = '23505';

interface StoreDependencies {
  readonly db: Database;
  readonly clock: Clock;
  /** Checkpoints and proofs of parents do not age in them. */
  readonly quiet: QuietHours;
  readonly comparisons: Comparisons;
  readonly suppressions: Pick<Suppressions, 'of'>;
  /** Counts what is committed. */
  readonly work?: WorkMetrics | undefined;
}

/** Opens, commits and ends walks in the database, by a step each where possible. Every write locks the list first. */
export class WalkStore {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #quiet: QuietHours;
  readonly #comparisons: Comparisons;
  readonly #suppressions: Pick<Suppressions, 'of'>;
  readonly #work: WorkMetrics | undefined;

  constructor({ db, clock, quiet, comparisons, suppressions, work }: StoreDependencies) {
    this.#db = db;
    this.#clock = clock;
    this.#quiet = quiet;
    this.#comparisons = comparisons;
    this.#suppressions = suppressions;
    this.#work = work;
  }

  /**
   * Takes the walk's list, and reads its checkpoint. A checkpoint of another grant or catalogue entry, or one that is too old, is
   * dropped with its ledger: the walk begins again. Throws `fenced` when the run is not ours any more, `rekey_required`
   * when the catalogue would name the list's records by another member, `mark_key_unreadable` when it is not known who was forgotten.
   */
  async open(
    walk: {
      readonly id: string;
      readonly run: RunClaim & OwnQuietHours & { readonly company: CompanyKey; readonly attempts?: number };
    },
    endpoint: Endpoint,
    countsAsResumed: boolean,
  ): Promise<OpenWalk> {
    const { id, run } = walk;
    const list = { ...run.company, resource: endpoint.resource };
    const isChild = endpoint.parent !== undefined;
    // Child lists are too short for a comparison to pay.
    const comparisons = isChild ? compareEverything : this.#comparisons;
    const parents = isChild ? await findProof(this.#db.prisma, { ...list, resource: endpoint.parent }) : undefined;
    const opened = await this.#take(
      {
        id,
        list,
        run,
        fingerprint: fingerprint(endpoint),
        ids: endpoint.id,
        rules: storedRules(endpoint.privacy),
        // Parents that have come since may precede the one that is read, and would never be asked for.
        parentsWalkId: parents?.walkId ?? null,
        checkpointSince: new Date(this.#quiet.countBack(run.quietHours, this.#clock.now(), CHECKPOINT_MAX_AGE_MS)),
        startedAt: new Date(this.#clock.now()),
        mayGoByAnother: comparisons.goesByAnother,
        isOptional: endpoint.optional === true,
        isChild,
        countsAsResumed,
      },
      endpoint,
    );
    const { epoch, pages, pass, baseline, idField, grantNumber, wasRead, lastVerifiedAt } = opened;
    const checkpoint = (opened.checkpoint ?? undefined) as WalkCheckpoint | undefined;
    if (opened.hasOldLedger) await this.#forgetLedger({ id, list, epoch, pages });
    // Must follow the step that took the list: until then an earlier holder may have filled it. Other passes over a parent's list count as one with the first.
    const isEmpty = !checkpoint && !isChild && baseline === null && (await isEmptyList(this.#db, list));
    if (isEmpty) await recordStartedEmpty(this.#db, { id, epoch });
    // Must run after that step: a change of suppressions takes the list, too, and so was committed before it.
    const suppressions = opened.hasSuppressions ? await this.#suppressions.of(this.#db, list) : undefined;
    // From here on no other worker writes to these walks without ending ours.
    const comparison = await comparisons.open(this.#db, list, {
      walkId: id,
      endpoint,
      baseline: pass === 1 ? baseline : null,
      etagTrust: opened.etagTrust,
      resumes: checkpoint !== undefined,
    });
    return {
      id,
      runId: run.id,
      list,
      quietHours: run.quietHours,
      epoch,
      grantNumber,
      wasRead,
      lastVerifiedAt,
      mayBeUnavailable: endpoint.optional === true && !wasRead && opened.records === 0,
      takesAnyWords: opened.wasUnavailable || (run.attempts ?? 0) >= ATTEMPTS_BEFORE_ANY_WORDS,
      pass,
      pages,
      fillsEmptyList: (isEmpty || opened.startedEmpty) && pass === 1,
      unstable: opened.unstableSince !== null,
      // It is not known whether pages before the checkpoint came by an ETag.
      etags: { isUsed: opened.etagTrust === 'ask' && checkpoint !== undefined, isFalse: false },
      memory: checkpoint
        ? await PassMemory.of(readReceived(this.#db, id, checkpoint.parent?.firstPage ?? 0))
        : comparison.newMemory(),
      comparison,
      ...(suppressions && { suppressions }),
      ...(idField !== null && { idField }),
      ...(checkpoint && { checkpoint }),
      ...(parents && { parentsWalkId: parents.walkId }),
    };
  }

  /** Takes the list. Where its stored records do not follow the catalogue's privacy rules yet, they are redacted first. */
  async #take(opening: WalkOpening, endpoint: Endpoint): Promise<OpenedWalk> {
    const { list, run, ids } = opening;
    try {
      const opened = await openWalk(this.#db, opening);
      if (!opened) throw fenced(list, 'the company was removed');
      return opened;
    } catch (error) {
      if (!wasRolledBack(error)) throw error;
      await inTransaction(this.#db, (tx) => lockRun(tx, run));
      const idField = await findIdField(this.#db.prisma, list);
      if (idField !== null && !ids.includes(idField)) throw rekeyRequired(list, idField, ids);
      const rows = await redactStored(this.#db, list, endpoint.privacy);
      if (rows === undefined) throw fenced(list, 'the walk has ended');
      return this.#take(opening, endpoint);
    }
  }

  /** The walk begins again: without a checkpoint its ledger means nothing. */
  async #forgetLedger(walk: WalkClaim): Promise<void> {
    await inTransaction(this.#db, async (tx) => {
      await lockWalk(tx, walk);
      await forgetPages(tx, walk.id, 'all');
    });
  }

  /** The page without the records of forgotten persons. Throws `fenced`. */
  leaveOut(walk: OpenWalk, endpoint: Endpoint, parent: string | undefined, page: ReceivedPage): Promise<ReceivedPage> {
    return leaveOut(this.#db, walk, endpoint, parent, page);
  }

  /** Writes pages, their ledger rows and the checkpoint that follows them: all or nothing. Pages that the walk receives during the commit are not part of it. */
  async commitPages(walk: OpenWalk, { pages, checkpoint }: PagesToCommit): Promise<void> {
    const write = writeOf(walk, pages, checkpoint);
    try {
      await this.#commitPages(walk, write, pages);
    } catch (error) {
      if (!walk.fillsEmptyList || sqlState(error) !== UNIQUE_VIOLATION) throw error;
      // A person put records into the mirror by hand.
      walk.fillsEmptyList = false;
      await recordForeignRecords(this.#db.prisma, walk.id);
      await this.#commitPages(walk, write, pages);
    }
  }

  async #commitPages(walk: OpenWalk, write: WalkWrite, pages: readonly CountedPage[]): Promise<void> {
    const written = await writePages(
      this.#db,
      write,
      pages.map((page) => pageToWrite(page, walk.fillsEmptyList)),
    );
    const received = pages.reduce((sum, { page }) => sum + page.count, 0);
    this.#work?.pagesCommitted(walk.list, { pages: pages.length, received, ...written });
    walk.pages += pages.length;
    if (write.idField !== undefined) walk.idField = write.idField;
  }

  /**
   * Begins the next pass from the start of the list, with an empty ledger of its own. In a walk over many parents, another
   * pass over the present parent's list: the pass stays, and only this parent's pages leave the ledger.
   */
  async beginPass(walk: OpenWalk, endpoint: Endpoint, pass: number, checkpoint: WalkCheckpoint): Promise<OpenWalk> {
    const { parent } = checkpoint;
    await inTransaction(this.#db, async (tx) => {
      await lockWalk(tx, walk);
      await forgetPages(tx, walk.id, parent ? { fromPage: parent.firstPage } : { beforePass: pass });
      const { received = 0, duplicates = 0 } = parent ?? {};
      await startPass(tx, { walkId: walk.id, pass, checkpoint, received, duplicates }, parent ? 'parent' : 'list');
    });
    walk.comparison.close();
    const trust = walk.etags.isFalse ? 'none' : 'check';
    const opening = { walkId: walk.id, endpoint, baseline: null, etagTrust: trust, resumes: false } as const;
    // The pass before has written texts that no earlier walk has proved.
    const comparison = parent ? compareEverything : await this.#comparisons.open(this.#db, walk.list, opening);
    // Every page of another pass over the whole list is sent.
    if (!parent) walk.etags.isUsed = false;
    return { ...walk, pass, checkpoint, memory: comparison.newMemory(), comparison, fillsEmptyList: false };
  }

  /**
   * Compares the order of the list with that of its last verified walk. Where it is another one, the list is recorded as
   * unstable.
   */
  async recordOrder(walk: OpenWalk): Promise<void> {
    if (walk.comparison.hasSamePages()) return;
    if (!(await hasMovedRecords(this.#db.prisma, walk.list, { walkId: walk.id, pass: walk.pass }))) return;
    await inTransaction(this.#db, async (tx) => {
      await lockWalk(tx, walk);
      await recordUnstable(tx, walk.list, new Date(this.#clock.now()));
    });
    walk.unstable = true;
  }

  /** The next living parent in the order of ids that the grant is shown; the first one without `after`. */
  async parentAfter({ list }: OpenWalk, resource: string, after = ''): Promise<string | undefined> {
    return firstVisibleId(this.#db, { ...list, resource }, after);
  }

  /** Ends a walk that read its list to the end. Only a verified one deletes. */
  async finish(walk: OpenWalk, ending: WalkEnding, endpoint: Endpoint): Promise<void> {
    const now = this.#clock.now();
    const parentsSince = this.#quiet.countBack(walk.quietHours, now, PARENTS_MAX_AGE_MS);
    await endWalk(this.#db, walk, ending, endpoint, { now, parentsSince, work: this.#work });
  }

  /**
   * The walk stopped at an error. Its checkpoint stays for the next attempt, unless going on from there would only lead to
   * the same error (`startsAgain`).
   */
  async fail(
    walk: { readonly id: string; readonly run: RunClaim },
    failure: { readonly error: ErrorView; readonly serviceSays?: string | undefined },
    startsAgain: boolean,
  ): Promise<void> {
    await inTransaction(this.#db, async (tx) => {
      await lockRun(tx, walk.run);
      if ((await failWalk(tx, walk.id, failure)) && startsAgain) await forgetWalk(tx, walk.id);
    });
  }
}

/** Puts the walk back to its beginning: without a checkpoint the ledger means nothing. */
async function forgetWalk(tx: Transaction, id: string): Promise<void> {
  await forgetPages(tx, id, 'all');
  await resetWalk(tx, id);
}

function rekeyRequired({ resource }: ListKey, idField: string, ids: readonly string[]): MusterError {
  return new MusterError(
    'rekey_required',
    `The records of ${resource} are kept under their ${idField}, but the catalogue now names them by ${ids.join(' or ')}. ` +
      `Put ${idField} back into the catalogue, or give up the old ids: muster rekey.`,
    { details: { resource, id_field: idField } },
  );
}
