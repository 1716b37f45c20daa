import pg from 'pg';
import type { DbtColumn, DbtFiles, DbtList, DbtView } from './dbt-input.js';
import { keyText } from './dbt-models.js';
import { changed, proved, SOURCE } from './dbt-names.js';
import { columnDocs } from './dbt-sources.js';

/** The changes of a list, loaded incrementally, and the list as it was proved, folded from them. */
export function changesFiles({ resource, changes, history }: DbtList): DbtFiles {
  if (changes === undefined) return [];
  return [
    [`models/changes/${changed(resource)}.sql`, changesModel(changes, history)],
    [`models/changes/${changed(resource)}.yml`, changesDocs(resource, changes)],
    [`models/proved/${proved(resource)}.sql`, provedModel(resource, changes)],
    [`models/proved/${proved(resource)}.yml`, provedDocs(resource, changes)],
    [`tests/muster_records_as_proved/muster_records_as_proved__${resource}.sql`, recordsTest(resource)],
  ];
}

/**
 * A change becomes visible when it has its number, and numbers only grow, so none comes late. What retention has removed before the first load is in the
 * history as versions without a number: they are the state from which the changes go on, by the number 0.
 */
function changesModel({ name, columns }: DbtView, history: DbtView | undefined): string {
  const shown = columns.map((column) => pg.escapeIdentifier(column.name)).join(',\n    ');
  const earlier = history && {
    from: `{{ source('${SOURCE}', '${history.name}') }}`,
    columns: columns.map((column) => earlierColumn(column, history)).join(',\n    '),
  };
  const feed = `source('${SOURCE}', 'feed')`;
  return `{{ config(
    materialized='incremental',
    incremental_strategy='append',
    on_schema_change='append_new_columns',
    indexes=[{'columns': ['environment', 'company_id', 'id', '_seq'], 'unique': true}, {'columns': ['_seq']}],
    post_hook="{{ muster_note_loaded(this, source('${SOURCE}', '${name}'), ${feed}) }}"
) }}
{%- set loaded = muster_loaded_through(this, ${feed}) if is_incremental() else 0 %}
SELECT
    ${keyText('id')} AS _key,
    ${shown}
FROM {{ source('${SOURCE}', '${name}') }}
{% if is_incremental() -%}
WHERE _seq > (SELECT COALESCE(max(_seq), 0) FROM {{ this }})
{%- else -%}
WHERE _seq > 0
${
  earlier === undefined
    ? ''
    : `UNION ALL
SELECT
    ${keyText('id')},
    ${earlier.columns}
FROM ${earlier.from}
WHERE _seq IS NULL AND (SELECT first_seq > 1 FROM {{ ${feed} }})
`
}{%- endif %}
`;
}

/** The column of the change that made a version. */
function earlierColumn({ name, type }: DbtColumn, { columns }: DbtView): string {
  if (name === '_seq') return '0';
  if (name === '_changed_at') return '_valid_from';
  return columns.some((column) => column.name === name) ? pg.escapeIdentifier(name) : `NULL::${type}`;
}

function changesDocs(resource: string, { columns }: DbtView): object {
  return {
    version: 2,
    models: [
      {
        name: changed(resource),
        description: `Each change of a record of ${resource}, by _seq. A deletion has the key alone.`,
        columns: [
          { name: '_key', description: 'Environment, company and id.', data_type: 'text', data_tests: ['not_null'] },
          ...columnDocs(columns).map((column) => {
            const { name } = column as { name: string };
            if (name === '_seq') return { ...column, data_tests: ['not_null'] };
            if (name !== '_op') return column;
            return {
              ...column,
              data_tests: [{ accepted_values: { arguments: { values: ['insert', 'update', 'delete', 'restore'] } } }],
            };
          }),
        ],
      },
    ],
  };
}

const HIDDEN = new Set(['_seq', '_op']);

function provedModel(resource: string, { columns }: DbtView): string {
  const shown = columns.filter(({ name }) => !HIDDEN.has(name)).map(({ name }) => pg.escapeIdentifier(name));
  const loaded = `ref('${changed(resource)}')`;
  return `{{ config(materialized='table', indexes=[{'columns': ['environment', 'company_id', 'id'], 'unique': true}]) }}
{%- set loaded = muster_loaded_through(${loaded}, source('${SOURCE}', 'feed')) %}
WITH proof AS (
    SELECT DISTINCT ON (environment, company_id) environment, company_id, seq, verified_at, records
    FROM {{ source('${SOURCE}', 'barriers') }}
    WHERE resource = '${resource}' AND seq <= {{ loaded }}
    ORDER BY environment, company_id, number DESC
),
newest AS (
    SELECT DISTINCT ON (c.environment, c.company_id, c.id)
        c.*, p.seq AS _barrier_seq, p.verified_at AS _verified_at, p.records AS _barrier_records
    FROM {{ ${loaded} }} c
    JOIN proof p ON p.environment = c.environment AND p.company_id = c.company_id AND c._seq <= p.seq
    ORDER BY c.environment, c.company_id, c.id, c._seq DESC
)
SELECT
    _key,
    ${[...shown, '_verified_at', '_barrier_seq', '_barrier_records'].join(',\n    ')}
FROM newest
WHERE _op <> 'delete'
`;
}

function provedDocs(resource: string, { columns }: DbtView): object {
  return {
    version: 2,
    models: [
      {
        name: proved(resource),
        description: `The records of ${resource} as each company's list was last proved complete, within the changes that are loaded.`,
        columns: [
          {
            name: '_key',
            description: 'Environment, company and id: unique among all companies.',
            data_type: 'text',
            data_tests: ['unique', 'not_null'],
          },
          ...columnDocs([
            ...columns.filter(({ name }) => !HIDDEN.has(name)),
            { name: '_verified_at', type: 'timestamp with time zone', description: 'As of when the list was complete.' },
            {
              name: '_barrier_seq',
              type: 'bigint',
              description: 'The number of the last change that belongs to the proved list.',
            },
            { name: '_barrier_records', type: 'bigint', description: 'The number of records that the list had then.' },
          ]),
        ],
      },
    ],
  };
}

/** The entries of a record that was forgotten are of placeholder ids, so the list may have that many fewer records than were proved. */
function recordsTest(resource: string): string {
  return `-- Companies whose ${resource}, folded from the changes, are not as many as were proved: load the changes again with --full-refresh.
SELECT p.environment, p.company_id, count(*) AS records, p._barrier_records AS proved_records
FROM {{ ref('${proved(resource)}') }} p
GROUP BY p.environment, p.company_id, p._barrier_records
HAVING count(*) > p._barrier_records
    OR count(*) < p._barrier_records AND count(*) + (
        SELECT count(*) FROM {{ ref('${changed(resource)}') }} c
        WHERE c.environment = p.environment AND c.company_id = p.company_id AND c._op = 'delete' AND c.id ~ '^#[0-9a-f]{32}$'
    ) < p._barrier_records
`;
}

/** The table's comment says up to where it is loaded, so that both go together when the table is made again. */
export const CHANGES_MACROS: DbtFiles = [
  [
    'macros/muster_loaded.sql',
    `{# Notes up to which change the table is loaded: up to the one before the first that it lacks, or else up to the end of the feed. #}
{% macro muster_note_loaded(loaded, changes, feed) %}
{%- if execute -%}
{%- set text = run_query("SELECT format('Loaded up to change %s of feed %s.', COALESCE((SELECT min(_seq) - 1 FROM " ~ changes ~ " WHERE _seq > (SELECT COALESCE(max(_seq), 0) FROM " ~ loaded ~ ")), last_seq), feed) FROM " ~ feed).rows[0][0] -%}
COMMENT ON TABLE {{ loaded }} IS '{{ text }}'
{%- endif -%}
{% endmacro %}

{# Up to which change the table is loaded. Fails where the feed does not go on from there: changes of two feeds, or with a gap, must not be mixed. #}
{% macro muster_loaded_through(loaded, feed) %}
{%- if not execute or flags.WHICH not in ['run', 'build'] -%}
{{ return('0') }}
{%- endif -%}
{%- set row = run_query("
SELECT l.seq, CASE
  WHEN l.seq IS NULL OR l.feed IS NULL THEN 'does not say up to which change it is loaded'
  WHEN l.feed <> f.feed::text THEN format('is loaded from feed %s, and the feed of the database is %s now, as after a restore', l.feed, f.feed)
  WHEN l.seq::bigint > f.last_seq THEN format('is loaded up to change %s, and the feed of the database ends with %s, as after a restore', l.seq, f.last_seq)
  WHEN l.seq::bigint + 1 < f.first_seq THEN format('is loaded up to change %s, and the feed begins with %s now: those between are no longer kept', l.seq, f.first_seq)
  END
FROM (SELECT substring(c.text FROM 'up to change ([0-9]+) ') AS seq, substring(c.text FROM ' of feed ([-0-9a-f]+)') AS feed
  FROM (SELECT obj_description(to_regclass('" ~ (loaded | string | replace("'", "''")) ~ "'), 'pg_class') AS text) c) l
CROSS JOIN " ~ feed ~ " f").rows[0] -%}
{%- if row[1] is not none -%}
{{ exceptions.raise_compiler_error(loaded.identifier ~ ' ' ~ row[1] ~ '. Load it again: dbt build --full-refresh --select ' ~ loaded.identifier ~ '+') }}
{%- endif -%}
{{ return(row[0]) }}
{% endmacro %}
`,
  ],
];
