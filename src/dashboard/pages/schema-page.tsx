import type { SchemaColumnModel } from '../../api/feed/schema.js';
import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Filters, filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { numberText, When } from '../parts/shown-values.js';

const PATH = '/schema';

export async function schemaPage({ ask, query }: PageRequest): Promise<PageContent> {
  const filters = filtersOf(query, ['resource']);
  const cursor = filtersOf(query, ['cursor']);
  const list = await ask<ListResponse<SchemaColumnModel>>(listAddress('/api/schema', { ...filters, ...cursor, limit: '100' }));
  return { title: 'Schema', body: <Schema list={list} filters={filters} /> };
}

interface SchemaProps {
  readonly list: ListResponse<SchemaColumnModel>;
  readonly filters: { readonly resource?: string };
}

function Schema({ list, filters }: SchemaProps) {
  const { resource } = filters;
  const fields = { ...(resource !== undefined && { resource }) };
  const commands = useCommands(['schema.rebuild'], fields);
  return (
    <>
      <h1>Schema</h1>
      <p class="lead">
        The columns of the views in schema <code>warehouse</code>, as they were learned from the records. Columns are only ever
        added, and none changes its name or type.
      </p>
      <Filters path={PATH} controls="schema">
        <label>
          <span>List</span>
          <input
            type="search"
            name="resource"
            value={resource}
            maxLength={41}
            pattern="[a-z][a-z0-9_]*"
            placeholder="employees"
          />
        </label>
      </Filters>
      <section id="schema" aria-label="Columns found">
        <DataTable
          caption="Columns of the typed views, by list, in the order in which they were added"
          columns={COLUMNS}
          rows={list.data}
          keyOf={(row) => `${row.resource} ${row.column}`}
          empty={resource === undefined ? 'No record was seen yet.' : 'No list of that name has a column.'}
        />
        <Pages path={PATH} filters={filters} next={list.next_cursor} />
        <ActionForm name="schema.rebuild" fields={fields} />
        <AsCommands
          commands={[{ label: 'This list', call: { method: 'GET', path: listAddress('/api/schema', filters) } }, ...commands]}
        />
      </section>
    </>
  );
}

const COLUMNS: readonly Column<SchemaColumnModel>[] = [
  column('List', ({ resource }) => resource),
  column('Column', ({ column: name, text_column: text }) => (
    <>
      <code>{name}</code>
      {text !== null && <small class="why">others in {text}</small>}
    </>
  )),
  column('Type', ({ type }) => type),
  column('Key', ({ path }) => <code>{path.map((key) => JSON.stringify(key)).join(' › ')}</code>),
  column('First seen', ({ first_seen_at, last_seen_at }) => (
    <>
      <When at={first_seen_at} />
      <small class="why">
        last <When at={last_seen_at} />
      </small>
    </>
  )),
  column('Values', ({ values }) => numberText(values), { numeric: true }),
  column('Nulls', ({ nulls }) => numberText(nulls), { numeric: true }),
  column('Misfits', ({ misfits }) => (misfits > 0 ? <span class="warn">{numberText(misfits)}</span> : '0'), { numeric: true }),
];
