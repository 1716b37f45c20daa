import type { CompanyKey } from '../core/company.js';
import type { ClaimedRun, WalkToDo } from '../db/tables/runs.js';
import type { SpanAttributes, TracedRun, TracedWork } from '../observability/tracing.js';

interface RunOfTrace extends Pick<ClaimedRun, 'id' | 'createdAt' | 'trigger' | 'kind' | 'mode'> {
  readonly company: CompanyKey;
  /** The walks that have not succeeded. */
  readonly walks: readonly WalkOfTrace[];
}

type WalkOfTrace = Pick<WalkToDo, 'id' | 'resource'> & { readonly startedAt: Date | string | null };

/** The run as its trace shows it: who and why, and nothing of the records. */
export function tracedRun({ id, createdAt, company, trigger, kind, mode, walks }: RunOfTrace): TracedRun {
  const attributes = {
    'muster.run.id': id,
    'muster.run.trigger': trigger,
    'muster.run.kind': kind,
    'muster.run.mode': mode,
    'muster.environment': company.environment,
    'muster.company.id': company.companyId,
  };
  return { id, startedAt: createdAt, attributes, lists: walks.filter(({ startedAt }) => startedAt !== null).map(tracedList) };
}

export function tracedList({ id, resource, startedAt }: WalkOfTrace): TracedWork {
  return {
    id,
    startedAt: startedAt === null ? new Date() : new Date(startedAt),
    attributes: { 'muster.list.resource': resource },
  };
}

/** `claim` counts all claims of the run, `number` the attempts that failed and this one; `deaths_before` are workers in a row that were lost on the run. */
export function tracedAttempt({ epoch, attempts, deaths }: Pick<ClaimedRun, 'epoch' | 'attempts' | 'deaths'>): SpanAttributes {
  return {
    'muster.attempt.claim': Number(epoch),
    'muster.attempt.number': attempts + 1,
    'muster.attempt.deaths_before': deaths,
  };
}
