import type { SchemaColumnModel } from '../../api/feed/schema.js';
import { ActionForm, useCommands } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { Filters, FoundList, type ListProps, ResourceSearch, readList } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { numberText, When } from '../parts/shown-values.js';

const PATH = '/schema';

export async function schemaPage(request: PageRequest): Promise<PageContent> {
  const found = await readList<SchemaColumnModel>(request, PATH, ['resource'], { limit: 100 });
  return { title: 'Schema', body: <Schema {...found} /> };
}

function Schema({ list, filters }: ListProps<SchemaColumnModel>) {
  const { resource } = filters;
  const fields = { ...(resource !== undefined && { resource }) };
  const commands = useCommands(['schema.rebuild'], fields);
  return (
    <>
      <h1>Schema</h1>
      <p class="lead">
        The columns of the views in schema <code>warehouse</code>, learned from the records. Columns are only ever added, and
        never change their name or type.
      </p>
      <Filters path={PATH}>
        <ResourceSearch value={resource} />
      </Filters>
      <FoundList path={PATH} label="Columns found" list={list} filters={filters} commands={commands}>
        <DataTable
          caption="Columns of the typed views, by list, in the order in which they were added"
          columns={COLUMNS}
          rows={list.data}
          keyOf={(row) => `${row.resource} ${row.column}`}
          empty={resource === undefined ? 'No record was seen yet.' : 'No list of that name has a column.'}
        />
        <ActionForm name="schema.rebuild" fields={fields} />
      </FoundList>
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
