import type { Catalogue } from '../../catalogue/endpoint.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import { PeriodicTask } from '../../core/periodic-task.js';
import type { Database } from '../../db/connection/database.js';
import { feedSpan } from '../../db/tables/change-batches.js';
import {
  claimNightExport,
  failNightExport,
  findDueNightExports,
  finishNightExport,
  type NightExportClaim,
  type NightExportKey,
  releaseNightExport,
  renewNightExport,
  seqOfNightBefore,
} from '../../db/tables/night-exports.js';
import type { Proxies } from '../../http/proxy/proxies.js';
import type { Logger } from '../../observability/logger.js';
import { openDestination } from './destinations/registry.js';
import type { Manifest, NightChanges } from './export-resource.js';
import { type ExportSettings, exportedResources, nightExportAddress } from './export-settings.js';

interface NightExportDependencies {
  readonly db: Database;
  readonly catalogue: Pick<Catalogue, 'endpoints'>;
  readonly exports: ExportSettings;
  readonly proxies?: Proxies | undefined;
  /** Signs the manifests. */
  readonly signManifest: (manifest: string) => Promise<string>;
  readonly logger: Logger;
}

/** Renews a claim well before it lapses. */
const RENEW_MS = 4_000;

const FIRST_DELAY_SECONDS = 60;
const LONGEST_DELAY_SECONDS = 30 * 60;

/** Exports each resource after each night: one worker tries a resource until it succeeds, its attempts are used up, or the next night is over. */
export class NightExports {
  readonly #deps: NightExportDependencies;

  constructor(deps: NightExportDependencies) {
    this.#deps = deps;
  }

  /** Finds the exports that are due now. */
  due(limit: number): Promise<NightExportClaim[]> {
    const { db, catalogue, exports } = this.#deps;
    return findDueNightExports(db, { resources: exportedResources(exports, catalogue), limit });
  }

  /** Makes one attempt, if it is due and no other worker makes it. An attempt that `signal` interrupts does not count. */
  async export(key: NightExportKey, signal: AbortSignal): Promise<void> {
    const { db, logger } = this.#deps;
    if (signal.aborted) return;
    const claim = await claimNightExport(db, key);
    if (!claim) return;
    const { attempts, ...facts } = claim;
    try {
      const { output, rows, seq, sha256 } = await this.#write(claim, signal);
      await finishNightExport(db, claim, { output, rows, seq });
      logger.info({ ...facts, output, rows, seq, sha256 }, 'night exported');
    } catch (error) {
      if (signal.aborted) return await releaseNightExport(db, claim);
      const delaySeconds = Math.min(FIRST_DELAY_SECONDS * 2 ** (attempts - 1), LONGEST_DELAY_SECONDS);
      const { code, message } = isMusterError(error) ? error : new MusterError('internal_error', 'See the log of the workers.');
      await failNightExport(db, claim, { error: { code, message }, delaySeconds });
      logger.error({ err: error, ...facts, attempts, retry_in_seconds: delaySeconds }, 'night not exported');
    }
  }

  async #write(claim: NightExportClaim, stopped: AbortSignal): Promise<Manifest & { readonly output: string }> {
    const { db, exports, signManifest } = this.#deps;
    const { environment, resource } = claim;
    const overtaken = new AbortController();
    // A renewal that fails ends nothing: a database that does not answer ends the export by itself.
    const renewal = new PeriodicTask(RENEW_MS, async () => {
      if (!(await renewNightExport(db, claim).catch(() => true))) overtaken.abort();
    });
    renewal.start();
    try {
      const output = nightExportAddress(exports, claim);
      const changesOutput = nightExportAddress(exports, claim, 'changes');
      const changes = exports.makesChanges ? await this.#changesOf(claim, changesOutput) : undefined;
      // Imported here, so that only workers that export load the writers of file formats.
      const { exportResource } = await import('./export-resource.js');
      const write = async (address: string, more: { since?: string; changes?: NightChanges | undefined }) =>
        exportResource({
          db,
          request: { resource, environment, since: more.since },
          format: exports.format,
          requiresProofs: exports.requiresProofs,
          sign: signManifest,
          changes: more.changes,
          destination: await openDestination(address, { proxies: this.#deps.proxies, makesFolder: true }),
          signal: AbortSignal.any([stopped, overtaken.signal]),
        });
      const manifest = await write(output, { changes });
      // The changes come second: they reach at least to the number of the full file, after which the next night's changes begin.
      if (changes && changes.file !== null) await write(changesOutput, { since: String(changes.since) });
      return { ...manifest, output };
    } finally {
      await renewal.stop();
    }
  }

  /** The file of changes that the night can have. */
  async #changesOf(claim: NightExportClaim, output: string): Promise<NightChanges> {
    const since = await seqOfNightBefore(this.#deps.db, claim);
    if (since === undefined) return { file: null, reason: 'first_night' };
    const { oldest, newest } = await feedSpan(this.#deps.db.pool);
    const isKept = BigInt(since) + 1n >= BigInt(oldest) && BigInt(since) <= BigInt(newest);
    if (!isKept) return { file: null, reason: 'changes_expired' };
    return { file: output.slice(output.lastIndexOf('/') + 1), since: Number(since) };
  }
}
