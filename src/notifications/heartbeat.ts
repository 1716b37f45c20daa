import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { claimHeartbeat } from '../db/tables/sweeps.js';
import type { Proxies } from '../http/proxy/proxies.js';
import type { Logger } from '../observability/logger.js';
import { registerSecret } from '../observability/secret-registry.js';
import { OutgoingRequests } from './outgoing-requests.js';

interface HeartbeatDependencies {
  readonly db: Database;
  /** Never logged, because its path or query may be all that is needed to write there. */
  readonly url: URL;
  /** All sweeps, and how often each is due. The end of each is recorded (recorded-sweeps.ts). */
  readonly sweeps: readonly { readonly name: string; readonly everyMs: number }[];
  /** Unset: requests are sent directly. */
  readonly proxies?: Proxies;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 5_000;

/**
 * Sends a request once a minute, so that a monitor alarms when they stop. Each worker checks whether one is due, and one of them sends it. The
 * heartbeat stops if no worker is alive, the database is unavailable, or a sweep is late.
 */
export class Heartbeat implements Service {
  readonly name = 'heartbeat';
  readonly #deps: HeartbeatDependencies;
  readonly #requests: OutgoingRequests;
  readonly #looks = new PeriodicTask(LOOK_EVERY_MS, () => this.#look());

  constructor(deps: HeartbeatDependencies) {
    this.#deps = deps;
    this.#requests = new OutgoingRequests({ proxies: deps.proxies });
    registerSecret(deps.url.href, { lasting: true });
  }

  async start(): Promise<void> {
    this.#looks.start();
  }

  async stop(): Promise<void> {
    await this.#requests.close();
    await this.#looks.stop();
  }

  async #look(): Promise<void> {
    const { db, url, sweeps, logger } = this.#deps;
    try {
      if (!(await claimHeartbeat(db, sweeps))) return;
      const outcome = await this.#requests.send(url, { method: 'GET' });
      if ('error' in outcome) logger.warn(outcome.error, 'the heartbeat was not taken; the next one is sent in a minute');
      else if (outcome.status >= 300) logger.warn({ status: outcome.status }, 'the heartbeat was refused; see HEARTBEAT_URL');
    } catch (error) {
      logger.debug({ err: error }, 'the heartbeat could not be sent; trying again');
    }
  }
}
