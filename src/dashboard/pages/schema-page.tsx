import type { SchemaColumnModel } from '../../api/feed/schema.js';
import { ActionForm, useCommands } from '../parts/action-form.js';
import { counts } from '../parts/columns.js';
import { type Column, column } from '../parts/data-table.js';
import { FoundTable, listPage, RESOURCE } from '../parts/list-page.js';
import { numberText, When } from '../parts/shown-values.js';

/** The filters of the page are the fields of its action. */
export const schemaPage = listPage<SchemaColumnModel>({
  path: '/schema',
  title: 'Schema',
  limit: 100,
  lead: (
    <>
      The columns of the views in schema <code>warehouse</code>, learned from the records. Columns are only ever added, and never
      change their name or type.
    </>
  ),
  filters: { resource: RESOURCE },
  label: 'Columns found',
  Items: (found) => (
    <>
      <FoundTable
        {...found}
        caption="Columns of the typed views, by list, in the order in which they were added"
        columns={COLUMNS}
        keyOf={(row) => `${row.resource} ${row.column}`}
        empty={['No list of that name has a column.', 'No record was seen yet.']}
      />
      <ActionForm name="schema.rebuild" fields={found.filters} />
    </>
  ),
  useFurtherCommands: ({ filters }) => useCommands(['schema.rebuild'], filters),
});

const COLUMNS: readonly Column<SchemaColumnModel>[] = [
  column('List', ({ resource }) => resource),
  column('Column', ({ column: name, text_column: text, twins }) => (
    <>
      <code>{name}</code>
      {text !== null && <small class="why">others in {text}</small>}
      {twins.map((twin) => (
        <small key={twin.column} class="why">
          as {twin.type} in {twin.column}
        </small>
      ))}
    </>
  )),
  column('Type', ({ type, declared, catalogue }) => (
    <>
      {type}
      <small class="why">{declared === null ? 'inferred' : `declared ${declared}`}</small>
      {catalogue !== null && (
        <small class="why">
          catalogue: <code>{catalogue}</code>
        </small>
      )}
    </>
  )),
  column('Key', ({ path }) => <code>{path.map((key) => JSON.stringify(key)).join(' › ')}</code>),
  column('First seen', ({ first_seen_at, last_seen_at }) => (
    <>
      <When at={first_seen_at} isBrief />
      <small class="why">
        last <When at={last_seen_at} isBrief />
      </small>
    </>
  )),
  counts('Values', ({ values }) => values),
  counts('Nulls', ({ nulls }) => nulls),
  column(
    'Misfits',
    ({ misfits, misfit_kinds }) =>
      misfits > 0 ? <span class="warn">{`${numberText(misfits)} (${Object.keys(misfit_kinds).join(', ')})`}</span> : '0',
    { numeric: true },
  ),
];
