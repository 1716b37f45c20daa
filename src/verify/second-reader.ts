import type { Catalogue, Endpoint } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import type { CompanyKey } from '../core/company.js';
import { portionsOf } from '../core/turns.js';
import type { Database } from '../db/connection/database.js';
import { ETAGS, falseEtags } from '../db/tables/etag-trust.js';
import { recordFalseEtag } from '../db/tables/ledger.js';
import { fenced, findIdField, type ListKey } from '../db/tables/lists.js';
import type { RunClaim } from '../db/tables/runs.js';
import { beginReading, countReceived, endReading, type VerifyResult } from '../db/tables/second-readings.js';
import type { ApiClient } from '../http/api-client.js';
import type { ResponseMemory } from '../http/response-memory.js';
import type { TokenSource } from '../http/token-source.js';
import { compareRecords, type Findings, judgeReading } from '../mirror/verification-read.js';
import type { Logger } from '../observability/logger.js';
import type { ListSpan } from '../observability/tracing.js';
import type { ListSuppressions, Suppressions } from '../privacy/suppressions.js';
import { idMembers, type PageOfRecords, type ReadListDependencies, readList } from './read-list.js';

export interface SecondReaderDependencies {
  readonly db: Database;
  readonly catalogue: Pick<Catalogue, 'get'>;
  readonly clock: Clock;
  readonly answers: ResponseMemory;
  readonly logger: Logger;
  /** The hash of a record's text as the ledger has it (src/unchanged); without it, only the feed says what the mirror should hold. */
  readonly rowHashOf: ((text: Uint8Array) => Buffer) | undefined;
  readonly suppressions: Pick<Suppressions, 'of'>;
}

/** The list to read, its run, and the way to the service. */
export interface ReadingRequest {
  readonly walkId: string;
  readonly run: RunClaim & { readonly company: CompanyKey };
  readonly endpoint: Endpoint;
  readonly api: Pick<ApiClient, 'request'>;
  readonly tokens: TokenSource;
  readonly signal: AbortSignal;
  readonly span?: ListSpan | undefined;
}

/**
 * Reads a list a second time, and compares the service with the mirror. It changes nothing: no row, no proof, no ledger. It is kept apart
 * from the walks, whose faults it must find: no baseline, no ETags, and a reader of its own (read-answer.ts). It shares with
 * them the way to the service: client, tokens, budget, and the pagers, which are the protocol of each paging style.
 *
 * A reading that is interrupted, or restarted because a person was forgotten, begins the list again. src/mirror/verification-read.ts says what a fault is,
 * and why the age of the mirror is none.
 */
export class SecondReader {
  readonly #deps: SecondReaderDependencies;

  constructor(deps: SecondReaderDependencies) {
    this.#deps = deps;
  }

  /** Throws `fenced` when the run is not ours any more, and what asking the service throws. */
  async read(request: ReadingRequest): Promise<void> {
    const { walkId, run, endpoint } = request;
    const list: ListKey = { ...run.company, resource: endpoint.resource };
    do {
      if (!(await beginReading(this.#deps.db, { walkId, run })))
        throw fenced(list, 'another worker has taken the second reading over, or it has ended');
    } while (!(await this.#readOnce(request, list)));
  }

  /** Returns false where the reading was restarted on the way, because a person was forgotten, or is not ours any more. */
  async #readOnce(request: ReadingRequest, list: ListKey): Promise<boolean> {
    const { db, rowHashOf } = this.#deps;
    const { walkId, run } = request;
    let pages = 0;
    let received = 0;
    let contradiction: string | undefined;
    for await (const { pass, records, etag, contradiction: found } of this.#pages(request, list)) {
      contradiction ??= found;
      const rowHashes: (Buffer | undefined)[] = [];
      pages += 1;
      received += records.length;
      for (const portion of portionsOf(records, ({ text }) => text?.length ?? 0)) {
        const hashed = portion.map((record) => ({
          ...record,
          rowHash: record.text === null ? undefined : rowHashOf?.(Buffer.from(record.text)),
        }));
        rowHashes.push(...hashed.map(({ rowHash }) => rowHash));
        if (!(await compareRecords(db, { list, walkId, run }, { pass, pages, received, records: hashed }))) return false;
      }
      if (etag !== undefined && ETAGS.strong.test(etag)) await this.#checkEtag(request, list, etag, rowHashes);
    }
    const findings = await judgeReading(db, { list, walkId }, { hashBytes: rowHashOf?.(new Uint8Array()).length ?? 0 });
    return endReading(db, { walkId, run, list, result: resultOf(findings, contradiction) });
  }

  /** An ETag that lets walks skip a page must mean the texts that it means now. */
  async #checkEtag(
    { span }: ReadingRequest,
    list: ListKey,
    etag: string,
    rowHashes: readonly (Buffer | undefined)[],
  ): Promise<void> {
    const { db, logger } = this.#deps;
    if (!rowHashes.every((hash) => hash !== undefined)) return;
    const now = { etag, records: rowHashes.length, rowHashes: Buffer.concat(rowHashes) };
    if (await recordFalseEtag(db, list, now)) logger.warn({ ...list, ...span?.ids }, falseEtags(list));
  }

  /** The pages of the list; for a child list, the pages of every parent that the service has. */
  async *#pages(request: ReadingRequest, list: ListKey): AsyncGenerator<PageOfRecords> {
    const { db, catalogue, suppressions } = this.#deps;
    const { endpoint, walkId } = request;
    const members = idMembers(await findIdField(db.prisma, list), endpoint);
    const countKnown = (pass: number, ids: readonly string[]) => countReceived(db, { walkId, pass, ids });
    const deps = this.#readingOf(request, countKnown, await suppressions.of(db, list));
    if (endpoint.parent === undefined) return yield* readList(endpoint, members, deps);
    const parents = catalogue.get(endpoint.parent)!;
    const parentList = { ...list, resource: endpoint.parent };
    const parentMembers = idMembers(await findIdField(db.prisma, parentList), parents);
    const seen = new Set<string>();
    const countSeen = async (_pass: number, ids: readonly string[]) => ids.filter((id) => seen.has(id)).length;
    const ofParents = this.#readingOf(request, countSeen, await suppressions.of(db, parentList));
    for await (const { records } of readList(parents, parentMembers, ofParents)) {
      for (const { id, text } of records) {
        if (seen.has(id)) continue;
        // A forgotten parent counts, too: pages are joined by the records that they share.
        seen.add(id);
        if (text === null) continue;
        yield* readList(endpoint, members, deps, id);
      }
    }
    return undefined;
  }

  #readingOf(
    { api, tokens, run, signal, span }: ReadingRequest,
    countKnown: ReadListDependencies['countKnown'],
    suppressions: ListSuppressions | undefined,
  ): ReadListDependencies {
    const { answers, clock } = this.#deps;
    return { api, tokens, companyId: run.company.companyId, answers, clock, signal, span, countKnown, suppressions };
  }
}

function resultOf(
  { missing, extra, different, changedSince, held, received, asOf, sample }: Findings,
  contradiction: string | undefined,
): VerifyResult {
  const counts = { missing, extra, different, changed_since: changedSince, held, compared: received };
  return { ...counts, as_of: asOf?.toISOString() ?? null, sample, ...(contradiction !== undefined && { contradiction }) };
}
