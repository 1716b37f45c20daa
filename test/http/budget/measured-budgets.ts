import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { systemClock } from '../../../src/core/clock.js';
import type { Database } from '../../../src/db/database.js';
import { type SetLimits, SharedRequestBudget } from '../../../src/http/budget/shared-request-budget.js';
import type { RateLimiter } from '../../../src/sandbox/rate-limiter.js';

export interface Sent {
  /** Milliseconds. */
  readonly at: number;
  readonly company: string;
  readonly isRefused: boolean;
}

export interface MeasuredBudgets {
  readonly sent: readonly Sent[];
  /** The most requests that were under way at once, of all together. */
  readonly mostAtOnce: number;
  stop(): Promise<void>;
}

export interface Demand {
  readonly workers: number;
  /** Companies of each worker; each asks for so many pages at once. */
  readonly companies: number;
  readonly pages: number;
  readonly latencyMs: number;
  readonly limits?: SetLimits;
  readonly limiter: () => RateLimiter;
}

/** Budgets of several workers on one database, and companies that ask for more than there is, for as long as it takes. */
export function measuredBudgets(db: Database, demand: Demand): MeasuredBudgets {
  const sent: Sent[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  const stopped = new AbortController();
  const logger = pino({ level: process.env.TEST_LOG ?? 'silent' });
  const budgets = Array.from({ length: demand.workers }, (_, index) => {
    const { limits = {} } = demand;
    return new SharedRequestBudget({ db, clock: systemClock, logger, environment: 'test', worker: `worker ${index}`, limits });
  });
  async function ask(budget: SharedRequestBudget, company: string): Promise<void> {
    while (!stopped.signal.aborted) {
      const permit = await budget.admit({ company, urgent: false });
      mostAtOnce = Math.max(mostAtOnce, (atOnce += 1));
      await sleep(demand.latencyMs / 2);
      const { isAdmitted, headers } = demand.limiter().admit(Date.now());
      sent.push({ at: Date.now(), company, isRefused: !isAdmitted });
      await sleep(demand.latencyMs / 2);
      atOnce -= 1;
      permit.answered({ status: isAdmitted ? 200 : 429, headers });
      if (!isAdmitted) await sleep(Number(headers['retry-after'] ?? 0.1) * 1_000);
    }
  }
  const asking = budgets.flatMap((budget, worker) =>
    Array.from({ length: demand.companies }, (_, company) => company).flatMap((company) =>
      Array.from({ length: demand.pages }, () => ask(budget, `company ${company} of ${worker}`).catch(() => {})),
    ),
  );
  return {
    sent,
    get mostAtOnce() {
      return mostAtOnce;
    },
    async stop() {
      stopped.abort();
      await Promise.all(budgets.map((budget) => budget.close()));
      await Promise.all(asking);
    },
  };
}
