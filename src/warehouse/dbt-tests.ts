import type { DbtFiles, DbtList } from './dbt-input.js';
import { SOURCE } from './dbt-names.js';

/**
 * Tests that name the list in their own name, which is what dbt shows, and the companies in their rows. They rest on facts alone, so that a list that is
 * late keeps no model from being built.
 */
export function listTests({ resource }: DbtList, facts: ReadonlySet<string>): DbtFiles {
  const lists = source('lists');
  return [
    [
      `tests/muster_lists_in_time/muster_lists_in_time__${resource}.sql`,
      `-- Companies whose ${resource} were not proved complete for STALE_AFTER_HOURS, or for as long as the schedule of the list allows.
SELECT environment, company_id, resource, last_verified_at
FROM ${lists}
WHERE resource = '${resource}' AND is_late
`,
    ],
    [
      `tests/muster_lists_proved/muster_lists_proved__${resource}.sql`,
      `-- Companies whose ${resource} were never proved complete.
SELECT c.environment, c.company_id, '${resource}' AS resource, l.unverified_since
FROM ${companiesOf(facts, source)} c
LEFT JOIN ${lists} l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = '${resource}'
WHERE c.status <> 'paused' AND l.last_verified_at IS NULL AND l.unavailable_since IS NULL
`,
    ],
  ];
}

/** SQL: the companies with their status. An older database knows only those of which a list was walked. */
export function companiesOf(facts: ReadonlySet<string>, relation: (name: string) => string): string {
  if (facts.has('companies')) return relation('companies');
  return `(SELECT DISTINCT environment, company_id, company_status AS status FROM ${relation('lists')})`;
}

function source(name: string): string {
  return `{{ source('${SOURCE}', '${name}') }}`;
}
