import pg from 'pg';
import type { DbtFiles, DbtList, DbtRecords, DbtReference } from './dbt-input.js';
import { historical, SOURCE, staged } from './dbt-names.js';
import { columnDocs } from './dbt-sources.js';

/** SQL: what tells a record from those of all companies. */
export const keyText = (id: string) => `environment || '/' || company_id || '/' || ${id}`;

const PLACES = ['_idx', '_idx_2'];

/** The records that exist, and the elements of their arrays. */
export function stagingFiles({ resource, living, elements }: DbtList): DbtFiles {
  return [
    ...filesOf(living, `Records of ${resource} that exist, of every company.`),
    ...elements.flatMap((view) => filesOf(view, `Elements of an array in the records of ${resource} that exist.`)),
  ];
}

function filesOf(view: DbtRecords, description: string): DbtFiles {
  const path = `models/staging/${staged(view.name)}`;
  return [
    [`${path}.sql`, stagingModel(view)],
    [`${path}.yml`, stagingTests(view, description)],
  ];
}

function shownOf({ columns, repeated }: DbtRecords) {
  return columns.filter(({ name }) => !repeated.includes(name));
}

function stagingModel(view: DbtRecords): string {
  const places = PLACES.filter((place) => view.columns.some(({ name }) => name === place));
  const own = ['id', ...places].join(` || '/' || `);
  const keys = view.references.map(({ key, value }) => `${keyText(value)} AS ${pg.escapeIdentifier(key)}`);
  return selectFrom(view.name, [
    `${keyText(own)} AS _key`,
    ...keys,
    ...shownOf(view).map(({ name }) => pg.escapeIdentifier(name)),
  ]);
}

function selectFrom(view: string, columns: readonly string[]): string {
  return `SELECT\n    ${columns.join(',\n    ')}\nFROM {{ source('${SOURCE}', '${view}') }}\n`;
}

function stagingTests(view: DbtRecords, description: string): object {
  const isElement = view.columns.some(({ name }) => name === '_idx');
  return {
    version: 2,
    models: [
      {
        name: staged(view.name),
        description,
        columns: [
          {
            name: '_key',
            description: `Environment, company, id${isElement ? ' and place' : ''}: unique among all companies.`,
            data_type: 'text',
            data_tests: ['unique', 'not_null'],
          },
          ...view.references.map((reference) => ({
            name: reference.key,
            quote: true,
            description: describeReference(reference),
            data_type: 'text',
            data_tests: [relationship(reference)],
          })),
          ...columnDocs(shownOf(view)).map((column) =>
            ['environment', 'company_id', 'id'].includes((column as { name: string }).name)
              ? { ...column, data_tests: ['not_null'] }
              : column,
          ),
        ],
      },
    ],
  };
}

function describeReference({ key, column, resource }: DbtReference): string {
  return key === '_parent_key'
    ? `The record of ${resource} to which it belongs.`
    : `The record of ${resource} that ${column} names.`;
}

/** A declared reference fails the build. One that was only found warns: a service may keep what names a record that is gone. */
function relationship({ resource, isDeclared }: DbtReference): object {
  return {
    relationships: {
      arguments: { to: `ref('${staged(resource)}')`, field: '_key' },
      config: { severity: isDeclared ? 'error' : 'warn' },
    },
  };
}

/** Every version of each record. */
export function historyFiles({ resource, history }: DbtList): DbtFiles {
  if (history === undefined) return [];
  const path = `models/history/${historical(resource)}`;
  const tested = new Set(['_valid_from', '_is_current', '_op']);
  const columns = [`${keyText('id')} AS _key`, ...history.columns.map(({ name }) => pg.escapeIdentifier(name))];
  const tests = {
    version: 2,
    models: [
      {
        name: historical(resource),
        description: `What each record of ${resource} was from _valid_from on, and until _valid_to.`,
        columns: [
          {
            name: '_key',
            description: 'Environment, company and id: one version at most is current.',
            data_type: 'text',
            data_tests: ['not_null', { unique: { config: { where: '_is_current' } } }],
          },
          ...columnDocs(history.columns).map((column) =>
            tested.has((column as { name: string }).name) ? { ...column, data_tests: ['not_null'] } : column,
          ),
        ],
      },
    ],
  };
  return [
    [`${path}.sql`, selectFrom(history.name, columns)],
    [`${path}.yml`, tests],
  ];
}
