import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Catalogue } from '../../catalogue/endpoint.js';
import { isMusterError, MusterError } from '../../core/errors.js';
import { PeriodicTask } from '../../core/periodic-task.js';
import type { Database } from '../../db/connection/database.js';
import {
  claimNightExport,
  failNightExport,
  findDueNightExports,
  finishNightExport,
  type NightExportClaim,
  type NightExportKey,
  releaseNightExport,
  renewNightExport,
} from '../../db/tables/night-exports.js';
import type { Proxies } from '../../http/proxy/proxies.js';
import type { Logger } from '../../observability/logger.js';
import { openDestination } from './destinations/open-destination.js';
import type { Manifest } from './export-resource.js';
import { type ExportSettings, exportedResources, isS3Address, nightExportAddress } from './export-settings.js';

interface NightExportDependencies {
  readonly db: Database;
  readonly catalogue: Pick<Catalogue, 'endpoints'>;
  readonly exports: ExportSettings;
  /** Whether S3 is another server than Amazon's. */
  readonly isOtherS3: boolean;
  /** The ways to S3; unset: directly. */
  readonly proxies?: Proxies | undefined;
  /** Signs the manifests. */
  readonly signManifest: (manifest: string) => Promise<string>;
  readonly logger: Logger;
}

/** Well before a claim lapses. */
const RENEW_MS = 4_000;

const FIRST_DELAY_SECONDS = 60;
const LONGEST_DELAY_SECONDS = 30 * 60;

/** Exports each resource after each night: one worker a resource, again and again until it succeeds, the attempts are used up, or the next night is over. */
export class NightExports {
  readonly #deps: NightExportDependencies;

  constructor(deps: NightExportDependencies) {
    this.#deps = deps;
  }

  /** What is to be exported now. */
  due(limit: number): Promise<NightExportClaim[]> {
    const { db, catalogue, exports } = this.#deps;
    return findDueNightExports(db, { resources: exportedResources(exports, catalogue), limit });
  }

  /** One attempt, if it is due and nobody else makes it. An attempt that `signal` interrupts does not count. */
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
    // A database that does not answer ends the export by itself.
    const renewal = new PeriodicTask(RENEW_MS, async () => {
      if (!(await renewNightExport(db, claim).catch(() => true))) overtaken.abort();
    });
    renewal.start();
    try {
      const output = nightExportAddress(exports, claim);
      if (!isS3Address(output)) await makeFolder(dirname(output));
      // Only where nights are exported is its writer of files loaded.
      const { exportResource } = await import('./export-resource.js');
      const manifest = await exportResource({
        db,
        request: { resource, environment },
        format: exports.format,
        requiresProofs: exports.requiresProofs,
        sign: signManifest,
        destination: await openDestination(output, this.#deps),
        signal: AbortSignal.any([stopped, overtaken.signal]),
      });
      return { ...manifest, output };
    } finally {
      await renewal.stop();
    }
  }
}

/** For the user of the worker alone, as its files are. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const { code = 'unknown' } = cause as NodeJS.ErrnoException;
    throw new MusterError(
      'export_failed',
      `The folder ${path} cannot be made (${code}). Give the user of the workers the right to write to EXPORT_TO.`,
      { cause },
    );
  }
}
