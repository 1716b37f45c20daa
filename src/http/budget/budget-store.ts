import type { Environment } from '../../core/company.js';
import type { Database } from '../../db/connection/database.js';
import { inTransaction } from '../../db/connection/transaction.js';
import {
  addBudget,
  announceLimit,
  type BudgetRow,
  changeBudget,
  leaseSlots,
  lockBudget,
  pauseBudget,
  readBudget,
  rememberAtOnce,
} from '../../db/tables/request-budgets.js';
import { readShares, removeOldShares, reportShare, type Share } from '../../db/tables/request-shares.js';

type Shares = Awaited<ReturnType<typeof readShares>>;
type Named<Arguments> = Omit<Arguments, 'environment'>;

/** The part of one environment's budget that all workers share. Each method calls the function of db/tables that documents it, and may throw database errors. */
export interface BudgetStore {
  add(): Promise<void>;
  read(): Promise<BudgetRow | undefined>;
  lease(request: Named<Parameters<typeof leaseSlots>[1]>): ReturnType<typeof leaseSlots>;
  change(known: Named<Parameters<typeof changeBudget>[1]>): Promise<boolean>;
  pause(seconds: number): Promise<void>;
  announce(limit: number): Promise<void>;
  rememberAtOnce(atOnce: number): Promise<void>;
  report(share: Share): Promise<void>;
  /** Writes the share that `divide` computes from the current shares, while no other worker divides. */
  divide(divide: (shares: Shares) => Share): Promise<void>;
  removeOldShares(): Promise<void>;
}

export function databaseBudget(db: Database, environment: Environment): BudgetStore {
  return {
    add: () => addBudget(db, { environment }),
    read: () => readBudget(db, { environment }),
    lease: (request) => leaseSlots(db, { environment, ...request }),
    change: (known) => changeBudget(db, { environment, ...known }),
    pause: (pause) => pauseBudget(db, { environment, pause }),
    announce: (announced) => announceLimit(db, { environment, announced }),
    rememberAtOnce: (atOnce) => rememberAtOnce(db, { environment, atOnce }),
    report: (share) => reportShare(db.prisma, { environment, ...share }),
    divide: (divide) =>
      inTransaction(db, async (tx) => {
        await lockBudget(tx, { environment });
        await reportShare(tx, { environment, ...divide(await readShares(tx, { environment })) });
      }),
    removeOldShares: () => removeOldShares(db.prisma),
  };
}
