import { createHash } from 'node:crypto';
import type pg from 'pg';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { requireMusterDatabase } from '../../db/connection/muster-database.js';
import { sqlState, withDatabaseErrors } from '../../db/connection/sql-state.js';
import { type BinaryRow, copiedRows } from '../../db/statements/binary-rows.js';
import { feedSpan, stampChanges } from '../../db/tables/change-batches.js';
import { listProofs } from '../../db/tables/list-proofs.js';
import type { Destination } from './destinations/destination.js';
import type { ExportFormat } from './export-settings.js';
import { findView } from './exported-view.js';
import { parquet } from './parquet.js';
import { requireProofs } from './require-proofs.js';
import { inSnapshot } from './snapshot.js';
import { type Column, type ExportRequest, findSource, type Source } from './source.js';
import { storedColumns } from './stored-columns.js';
import { describeType } from './stored-types.js';
import { csv, type Encoding, ndjson } from './text-lines.js';
import { zstd } from './zstd.js';

/** The description of an export, in a file next to it. */
export interface Manifest {
  /** The file's name in its folder; absent for standard output. */
  readonly file?: string;
  readonly resource: string;
  /** The list that `resource` is a view of; absent for the list itself. */
  readonly view_of?: string;
  readonly format: ExportFormat;
  /** Whether the rows are the records as sent, instead of rows of the typed view. */
  readonly raw: boolean;
  readonly rows: number;
  /** The hash of the file's bytes, in hex. */
  readonly sha256: string;
  /** In the order of the file; `stored_as` is the type in a Parquet file. */
  readonly columns: readonly { readonly name: string; readonly type: Column['kind']; readonly stored_as?: string }[];
  /** A Parquet file has it: the number of values that Parquet lacks, for each column with any. They are null there, and their texts are in `<column>__text`. */
  readonly misfits?: Readonly<Record<string, number>>;
  /** The proofs of the lists of all companies in the request, in the snapshot of the rows. */
  readonly lists: readonly {
    readonly environment: string;
    readonly company_id: string;
    readonly verified_at: string | null;
    /** Not proved for STALE_AFTER_HOURS, or never within that time of its first walk. */
    readonly is_late: boolean;
    readonly proof: string | null;
    readonly records: number;
    /** The newest certificate, unless there is none yet. Its `feed.through` is no greater than `seq`: all that it counts is in the file, or was replaced. */
    readonly certificates: readonly string[];
  }[];
  /** The last number of the feed in the snapshot: later changes have greater ones. */
  readonly seq: number;
  /** With EXPORT_CHANGES=yes: the file of the changes since the night before, or why there is none. */
  readonly changes?: NightChanges;
  /** With --since: the number after which the changes begin. */
  readonly since?: number;
}

/** A first night has no night before, and the feed may no longer reach it. */
export type NightChanges =
  | { readonly file: string; readonly since: number }
  | { readonly file: null; readonly reason: 'first_night' | 'changes_expired' };

export interface ExportProgress {
  readonly rows: number;
  /** Undefined where the number of rows is not known before the end. */
  readonly total: number | undefined;
}

export interface ExportOptions {
  readonly db: Database;
  readonly request: ExportRequest;
  readonly format: ExportFormat;
  readonly destination: Destination;
  /** Signs the manifest: a compact JWS over its text. Unset: there is no signed one. */
  readonly sign?: ((manifest: string) => Promise<string>) | undefined;
  /** Whether the export fails where a list was never proved, or is late. */
  readonly requiresProofs?: boolean | undefined;
  /** Goes into the manifest as it is. */
  readonly changes?: NightChanges | undefined;
  /** Called after each piece that was written. */
  readonly onProgress?: (progress: ExportProgress) => void;
  /** Calls the export off. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Exports a resource as it is at one instant: rows, proofs and place in the feed are of one snapshot. Throws `unknown_resource`, `changes_expired`
 * where the feed no longer keeps all changes after `since`, `invalid_request` for a `since` that it never reached, `lists_unproved` where proofs are
 * required and lacking, and `stopping` when it was called off. After an error the destination is as it was before.
 */
export async function exportResource(options: ExportOptions): Promise<Manifest> {
  const { db, request, format, destination, sign, requiresProofs = false, onProgress, signal } = options;
  try {
    await withDatabaseErrors(requireMusterDatabase(db.pool));
    await numberChanges(db);
    const hash = createHash('sha256');
    let rows = 0;
    const facts = await inSnapshot(
      db.pool,
      async (client) => {
        const view = await findView(client, request.resource);
        const { newest: seq } = await requireKept(client, request);
        const lists = await listProofs(client, { ...request, resource: view.list });
        if (requiresProofs) requireProofs(view.list, lists);
        const hasTotal = view.isList && request.since === undefined;
        const total = hasTotal ? lists.reduce((sum, { records }) => sum + records, 0) : undefined;
        const source = await findSource(client, view, request);
        const { encoding, ...description } = await encodingOf(client, format, source);
        const counted = countRows(copiedRows(client, encoding.query), () => (rows += 1));
        for await (const bytes of encoding.encode(counted)) {
          hash.update(bytes);
          await destination.write(bytes);
          onProgress?.({ rows, total });
        }
        return { view, description, lists, seq };
      },
      signal,
    );
    const manifest: Manifest = {
      ...(destination.name !== undefined && { file: destination.name }),
      resource: request.resource,
      ...(!facts.view.isList && { view_of: facts.view.list }),
      format,
      raw: request.isRaw === true,
      rows,
      sha256: hash.digest('hex'),
      ...facts.description,
      lists: facts.lists.map(({ companyId, verifiedAt, isLate, ...list }) => ({
        environment: list.environment,
        company_id: companyId,
        verified_at: verifiedAt?.toISOString() ?? null,
        is_late: isLate,
        proof: list.proof,
        records: list.records,
        certificates: list.certificate === null ? [] : [list.certificate],
      })),
      seq: Number(facts.seq),
      ...(options.changes && { changes: options.changes }),
      ...(request.since !== undefined && { since: Number(request.since) }),
    };
    signal?.throwIfAborted();
    const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
    await destination.finish({ text, signed: await sign?.(text) });
    return manifest;
  } catch (error) {
    await destination.abort();
    throw error;
  }
}

/** Numbers new changes, so that the place in the feed covers every committed row. A standby, or a role that only reads, takes the place that the last worker left. */
async function numberChanges(db: Database): Promise<void> {
  await stampChanges(db).catch((error: unknown) => {
    const state = sqlState(error);
    if (state !== '25006' && state !== '42501') throw error; // read_only_sql_transaction, insufficient_privilege
  });
}

async function requireKept(client: pg.ClientBase, { since }: ExportRequest): Promise<{ newest: string }> {
  const span = await feedSpan(client);
  if (since === undefined) return span;
  if (BigInt(since) > BigInt(span.newest)) {
    throw new MusterError(
      'invalid_request',
      `The feed ends at ${span.newest}, before --since ${since}: is that number of another database? Export the resource without --since.`,
    );
  }
  // True of 0, too, at which a reader of the feed may begin: a load from it would lack the records that did not change since.
  if (BigInt(since) + 1n < BigInt(span.oldest)) {
    throw new MusterError(
      'changes_expired',
      `Changes after --since ${since} are no longer kept (CHANGE_RETENTION_DAYS). Export the resource without --since, load it in place of what ` +
        'you have, then go on with the seq of its manifest.',
    );
  }
  return span;
}

async function encodingOf(
  client: pg.ClientBase,
  format: ExportFormat,
  source: Source,
): Promise<{ encoding: Encoding } & Pick<Manifest, 'columns' | 'misfits'>> {
  if (format !== 'parquet') {
    const columns = source.columns.map(({ name, kind }) => ({ name, type: kind }));
    return { encoding: format === 'csv' ? csv(source) : ndjson(source), columns };
  }
  const { columns, misfits } = await storedColumns(client, source);
  return {
    encoding: parquet(source, columns, await zstd()),
    columns: columns.map(({ name, kind, type }) => ({ name, type: kind, stored_as: describeType(type) })),
    misfits,
  };
}

async function* countRows(rows: AsyncIterable<BinaryRow>, count: () => void): AsyncGenerator<BinaryRow, void, undefined> {
  for await (const row of rows) {
    count();
    yield row;
  }
}
