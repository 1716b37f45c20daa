import { hoursOf, type StaleAfterHours } from '../core/stale-after.js';
import { jinjaText } from './dbt-descriptions.js';
import type { DbtColumn, DbtList, DbtView } from './dbt-input.js';
import { SOURCE } from './dbt-names.js';
import { companiesOf } from './dbt-tests.js';

/** The file that declares the views as a source. */
export function dbtSources(lists: readonly DbtList[], facts: readonly DbtView[], staleAfterHours: StaleAfterHours): object {
  const known = new Set(facts.map(({ name }) => name));
  const described = (view: DbtView, description: string) => ({
    name: view.name,
    description: jinjaText(view.description || description),
    columns: columnDocs(view.columns),
  });
  return {
    version: 2,
    sources: [
      {
        name: SOURCE,
        description: 'The mirror, by typed views of the records that exist, and what Muster knows of it.',
        schema: 'warehouse',
        tables: [
          ...lists.flatMap(({ resource, living, history, changes, elements }) => [
            {
              ...described(living, `Records of ${resource} that exist, of every company.`),
              config: freshness(resource, staleAfterHours, known),
            },
            ...(history ? [described(history, `Each version of each record of ${resource}, and when it was valid.`)] : []),
            ...(changes ? [described(changes, `Each change of a record of ${resource}, by its number.`)] : []),
            ...elements.map((view) => described(view, `Elements of an array in the records of ${resource} that exist.`)),
          ]),
          ...facts.map((view) => described(view, '')),
        ],
      },
    ],
  };
}

/** The columns of a view in a file of properties. Names are quoted: some are words of SQL. */
export function columnDocs(columns: readonly DbtColumn[]): readonly object[] {
  return columns.map(({ name, type, description }) => ({
    name,
    quote: true,
    data_type: type,
    description: jinjaText(description),
  }));
}

/**
 * The oldest last proof of a list among all companies: the newest proof would hide every other. A list that was never proved is older than all. Paused
 * companies, and those that do not have the list, do not count.
 */
function freshness(resource: string, staleAfterHours: StaleAfterHours, facts: ReadonlySet<string>): object {
  const hours = hoursOf(staleAfterHours, resource);
  const relation = (name: string) => `warehouse.${name}`;
  const longestAgo = `SELECT COALESCE(min(COALESCE(l.last_verified_at, to_timestamp(0))), now())
FROM ${companiesOf(facts, relation)} c
LEFT JOIN warehouse.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = '${resource}'
WHERE c.status <> 'paused' AND l.unavailable_since IS NULL`;
  return {
    loaded_at_query: longestAgo,
    freshness: {
      error_after: Number.isInteger(hours)
        ? { count: hours, period: 'hour' }
        : { count: Math.round(hours * 60), period: 'minute' },
    },
  };
}
