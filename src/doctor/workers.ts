import { ADVICE } from '../core/advice.js';
import { countForDoctor } from '../db/tables/workers.js';
import { type Check, counted, ok, problem, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** Checks that a worker lives. Without companies no work waits for one yet. */
export function checkWorkers(access: DatabaseAccess): Check {
  return {
    name: 'workers',
    look: async () => {
      const { workers, companies } = await access.read(countForDoctor);
      if (workers > 0) return [ok(`${counted(workers, 'worker')} alive`)];
      const found = `no worker lives, and ${counted(companies, 'company is', 'companies are')} onboarded`;
      return [companies > 0 ? problem(found, ADVICE.no_worker) : warning(found, ADVICE.no_worker)];
    },
  };
}
