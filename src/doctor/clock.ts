import type { Clock } from '../core/clock.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import { readServerClock } from '../db/connection/server-state.js';
import { type Check, type Finding, NotLookedAt, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';
import type { ServiceProbes } from './service-probes.js';

/** Nobody notices less: what is due is decided by the database's clock alone. */
const APART_MS = 5_000;
/** Certificates and signatures of the webhook begin to fail. */
const FAR_APART_MS = 60_000;

export interface ClockNeeds {
  readonly access: DatabaseAccess;
  readonly probes: ByEnvironment<ServiceProbes>;
  readonly clock: Clock;
}

/** The clock of this machine against those of the others that it works with. */
export function checkClock({ access, probes, clock }: ClockNeeds): Check {
  return {
    name: 'clock',
    look: async () => {
      const services = Object.entries(probes).map(async ([environment, { api }]) => {
        // Where it does not answer, its own check says so.
        const probe = await api().catch(() => undefined);
        return probe?.aheadMs === undefined ? [] : [compared(`the ${environment} service`, probe.aheadMs)];
      });
      return [...(await ofDatabase(access, clock)), ...(await Promise.all(services)).flat()];
    },
  };
}

async function ofDatabase(access: DatabaseAccess, clock: Clock): Promise<Finding[]> {
  try {
    return await access.read(async (db) => {
      const [asked, begin] = [clock.now(), clock.monotonic()];
      const now = await readServerClock(db);
      return [compared('the database', now - (asked + (clock.monotonic() - begin) / 2))];
    });
  } catch (error) {
    if (error instanceof NotLookedAt) return [error.finding];
    throw error;
  }
}

/** `aheadMs`: how much the other clock says more than ours. */
function compared(whose: string, aheadMs: number): Finding {
  const apart = Math.abs(aheadMs);
  if (apart < APART_MS) return ok(`within ${APART_MS / 1_000} s of that of ${whose}`);
  const found = `${Math.round(apart / 1_000)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} that of ${whose}`;
  return (apart < FAR_APART_MS ? warning : problem)(
    found,
    'Let NTP set the clock of each machine: timedatectl says whether it does.',
  );
}
