import type { Clock } from '../core/clock.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import { readServerClock } from '../db/connection/server-state.js';
import { type Check, type Finding, ifNotLookedAt, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';
import type { ServiceProbes } from './service-probes.js';

/** A smaller difference does no harm: only the database's clock decides when work is due. */
const APART_MS = 5_000;
/** From this difference on, certificates and signatures of the webhook fail. */
const FAR_APART_MS = 60_000;

export interface ClockNeeds {
  readonly access: DatabaseAccess;
  readonly probes: ByEnvironment<ServiceProbes>;
  readonly clock: Clock;
}

/** Compares this machine's clock with the clocks of the database and the services. */
export function checkClock({ access, probes, clock }: ClockNeeds): Check {
  return {
    name: 'clock',
    look: async () => {
      const services = Object.entries(probes).map(async ([environment, { api }]) => {
        // The service's own check reports that it does not answer.
        const probe = await api().catch(() => undefined);
        return probe?.aheadMs === undefined ? [] : [compared(`the ${environment} service`, probe.aheadMs)];
      });
      return [await ofDatabase(access, clock), ...(await Promise.all(services)).flat()];
    },
  };
}

function ofDatabase(access: DatabaseAccess, clock: Clock): Promise<Finding> {
  const look = access.read(async (db) => {
    const [asked, begin] = [clock.now(), clock.monotonic()];
    const now = await readServerClock(db);
    return compared('the database', now - (asked + (clock.monotonic() - begin) / 2));
  });
  return look.catch(ifNotLookedAt((finding) => finding));
}

/** `aheadMs` is positive where the other clock is ahead of ours. */
function compared(whose: string, aheadMs: number): Finding {
  const apart = Math.abs(aheadMs);
  if (apart < APART_MS) return ok(`within ${APART_MS / 1_000} s of that of ${whose}`);
  const found = `${Math.round(apart / 1_000)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} that of ${whose}`;
  return (apart < FAR_APART_MS ? warning : problem)(
    found,
    'Let NTP set the clock of each machine: timedatectl says whether it does.',
  );
}
