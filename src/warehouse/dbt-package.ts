import { stringify } from 'yaml';
import type { DbtList } from './dbt-lists.js';

/** The files of a package, by their path in it. */
export type DbtPackage = ReadonlyMap<string, string>;

const SOURCE = 'muster';

/** The first line of every file: a later `muster dbt init --force` overwrites files with it. */
const HEAD = 'Written by `muster dbt init`, which overwrites it. Keep your own models in other files.';

/**
 * A package for dbt 1.10 and later over schema `warehouse`: the views as sources, whose freshness is the age of the oldest
 * proof; one staging model per list with a key and tests; and a model of its history.
 */
export function dbtPackage(lists: readonly DbtList[], { staleAfterHours }: { readonly staleAfterHours: number }): DbtPackage {
  return new Map([
    ['dbt_project.yml', yaml(PROJECT)],
    ['profiles.yml', yaml(PROFILES)],
    ['models/sources.yml', yaml(sources(lists, staleAfterHours))],
    ...lists.flatMap((list): [string, string][] => [
      [`models/staging/${staged(list.resource)}.sql`, sql(stagingModel(list))],
      [`models/staging/${staged(list.resource)}.yml`, yaml(stagingTests(list))],
    ]),
    ...lists
      .filter(({ historyColumns }) => historyColumns.length > 0)
      .flatMap((list): [string, string][] => [
        [`models/history/${historical(list.resource)}.sql`, sql(historyModel(list))],
        [`models/history/${historical(list.resource)}.yml`, yaml(historyTests(list))],
      ]),
    ['tests/muster_lists_in_time.sql', sql(LATE_LISTS)],
  ]);
}

const PROJECT = {
  name: 'muster',
  version: '1.0.0',
  profile: 'muster',
  'require-dbt-version': '>=1.10.0',
  'model-paths': ['models'],
  'test-paths': ['tests'],
  models: { muster: { '+materialized': 'view' } },
};

/** Read by dbt when it runs inside the package; a profile named muster in ~/.dbt works too. */
const PROFILES = {
  muster: {
    target: 'default',
    outputs: {
      default: {
        type: 'postgres',
        host: "{{ env_var('PGHOST', 'localhost') }}",
        port: "{{ env_var('PGPORT', '5432') | as_number }}",
        user: "{{ env_var('PGUSER') }}",
        password: "{{ env_var('PGPASSWORD') }}",
        dbname: "{{ env_var('PGDATABASE') }}",
        schema: "{{ env_var('DBT_SCHEMA', 'analytics') }}",
        threads: 4,
      },
    },
  },
};

function sources(lists: readonly DbtList[], staleAfterHours: number): object {
  return {
    version: 2,
    sources: [
      {
        name: SOURCE,
        description: 'The mirror, by typed views of the records that exist, and what Muster knows of it.',
        schema: 'warehouse',
        tables: [
          ...lists.map(({ resource, isWalked }) => ({
            name: resource,
            description: `Records of ${resource} that exist, of every company.`,
            ...(isWalked && { config: freshness(resource, staleAfterHours) }),
          })),
          ...lists
            .filter(({ historyColumns }) => historyColumns.length > 0)
            .map(({ resource }) => ({
              name: `${resource}_history`,
              description: `What each record of ${resource} was, and when.`,
            })),
          { name: 'lists', description: 'A list of a company, and when it was last proved complete.' },
          { name: 'runs', description: 'A sync of a company.' },
          { name: 'walks', description: 'A list that a run has read.' },
          { name: 'barriers', description: 'Up to which change of the feed a list is known to be complete.' },
          { name: 'columns', description: 'Columns of the typed views.' },
        ],
      },
    ],
  };
}

/**
 * The oldest last proof of a list among all companies: the newest proof would hide every other. An overdue first proof
 * is older than all; a first proof that is not due yet does not count. Lists of paused companies count only if there are no others.
 */
function freshness(resource: string, staleAfterHours: number): object {
  const provedAt = `CASE WHEN last_verified_at IS NOT NULL THEN last_verified_at WHEN is_late THEN to_timestamp(0) ELSE now() END`;
  const longestAgo = `SELECT COALESCE(min(proved_at) FILTER (WHERE company_status <> 'paused'), min(proved_at)) FROM (SELECT company_status, ${provedAt} AS proved_at FROM warehouse.lists WHERE resource = '${resource}') l`;
  return {
    loaded_at_query: longestAgo,
    freshness: { error_after: { count: staleAfterHours, period: 'hour' } },
  };
}

const KEY = (columns = '') => `environment || '/' || company_id || '/' || ${columns || 'id'}`;

function stagingModel({ resource, columns, references }: DbtList): string {
  const keys = references.map(({ column }) => `    ${KEY(quoted(column))} AS ${quoted(keyOf(column))}`);
  const all = [`    ${KEY()} AS _key`, ...keys, ...columns.map((column) => `    ${quoted(column)}`)];
  return `SELECT\n${all.join(',\n')}\nFROM {{ source('${SOURCE}', '${resource}') }}\n`;
}

function stagingTests({ resource, references }: DbtList): object {
  return {
    version: 2,
    models: [
      {
        name: staged(resource),
        columns: [
          {
            name: '_key',
            description: 'Environment, company and id: unique among all companies.',
            data_tests: ['unique', 'not_null'],
          },
          ...['environment', 'company_id', 'id'].map((name) => ({ name, data_tests: ['not_null'] })),
          ...references.map(({ column, resource: referred }) => ({
            name: keyOf(column),
            quote: true,
            description: `The record of ${referred} that ${column} names.`,
            // A service may keep references to a record that is gone.
            data_tests: [
              {
                relationships: {
                  arguments: { to: `ref('${staged(referred)}')`, field: '_key' },
                  config: { severity: 'warn' },
                },
              },
            ],
          })),
        ],
      },
    ],
  };
}

function historyModel({ resource, historyColumns }: DbtList): string {
  const all = [`    ${KEY()} AS _key`, ...historyColumns.map((column) => `    ${quoted(column)}`)];
  return `SELECT\n${all.join(',\n')}\nFROM {{ source('${SOURCE}', '${resource}_history') }}\n`;
}

function historyTests({ resource }: DbtList): object {
  return {
    version: 2,
    models: [
      {
        name: historical(resource),
        description: `What each record of ${resource} was from _valid_from on, and until _valid_to.`,
        columns: [
          {
            name: '_key',
            description: 'Environment, company and id, of which one version at most is current.',
            data_tests: ['not_null', { unique: { config: { where: '_is_current' } } }],
          },
          ...['_valid_from', '_is_current', '_op'].map((name) => ({ name, data_tests: ['not_null'] })),
        ],
      },
    ],
  };
}

/** Names each list that is late or overdue for its first proof; the freshness of a source names none. */
const LATE_LISTS = `SELECT environment, company_id, resource, last_verified_at
FROM {{ source('${SOURCE}', 'lists') }}
WHERE is_late
`;

const staged = (resource: string) => `stg_muster__${resource}`;
const historical = (resource: string) => `muster__${resource}_history`;
const keyOf = (column: string) => `_${column}_key`;

/** Jinja would interpret braces in a name, so they are written as texts. */
function quoted(name: string): string {
  const identifier = `"${name.replaceAll('"', '""')}"`;
  return /[{}#%]/.test(identifier) ? `{{ ${JSON.stringify(identifier)} }}` : identifier;
}

function yaml(value: object): string {
  return `# ${HEAD}\n${stringify(value, { lineWidth: 0 })}`;
}

function sql(text: string): string {
  return `-- ${HEAD.replaceAll('`', '')}\n${text}`;
}
