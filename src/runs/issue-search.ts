import type { Catalogue } from '../catalogue/endpoint.js';
import type { Clock } from '../core/clock.js';
import { ENVIRONMENTS } from '../core/company.js';
import type { ByEnvironment } from '../core/provider-settings.js';
import type { StaleAfterHours } from '../core/stale-after.js';
import type { IssueSearch } from '../db/tables/issue-search.js';
import { type ExportSettings, exportedResources } from '../warehouse/export/export-settings.js';
import { nightsAround, type Schedule } from './schedule.js';

export interface IssueSearchDependencies {
  readonly catalogue: Catalogue;
  /** Unset: nights are not exported. */
  readonly exports?: ExportSettings | undefined;
  readonly schedule: Schedule;
  /** A list is late once its last proof is older than this. */
  readonly staleAfterHours: StaleAfterHours;
  /** The configured environments. */
  readonly providers: ByEnvironment<object>;
  /** Undefined: no notifications are sent. */
  readonly webhook?: object | undefined;
  readonly clock: Pick<Clock, 'now'>;
}

/** At the beginning of a night few runs are under way, so an estimate from their pace would be far too long. */
const YOUNG_NIGHT_MS = 30 * 60_000;

/** Returns a function that says what to look for now. `isWorker`: this process works on the queue. */
export function issueSearchOf(deps: IssueSearchDependencies, isWorker: boolean): () => IssueSearch {
  const { catalogue, exports, schedule, staleAfterHours, providers, webhook, clock } = deps;
  const resources = catalogue.endpoints.map(({ resource }) => resource);
  const exported = exportedResources(exports, catalogue);
  const environments = ENVIRONMENTS.filter((environment) => providers[environment]);
  return () => {
    const now = clock.now();
    const { began, next } = nightsAround(schedule, now);
    return {
      resources,
      exported,
      staleAfterHours,
      environments,
      isWorker,
      hasWebhook: webhook !== undefined,
      secondsLeft: (next - now) / 1_000,
      isNightYoung: now - began < YOUNG_NIGHT_MS,
    };
  };
}
