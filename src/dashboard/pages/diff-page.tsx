import type { DiffItemModel, DiffModel } from '../../api/runs/run-diff.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { AsCommands, get } from '../parts/action-form.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { RecordLink, type RecordPlace, ValuesHidden } from '../parts/record-links.js';
import { CompanyLink, Environment, Link } from '../parts/shown-values.js';

/** A record may have many members, so a page has few records. */
const LIMIT = '50';

export async function diffPage({ ask, params: { id = '' }, query }: PageRequest): Promise<PageContent> {
  const path = `/api/runs/${encodeURIComponent(id)}` as const;
  const filters = filtersOf(query, ['resource', 'against']);
  const cursor = filtersOf(query, ['cursor']);
  const run = await ask<RunModel>(path);
  // Values are requested as texts, since parsed numbers would lose digits.
  const diff = await ask<DiffModel>(listAddress(`${path}/diff`, { ...filters, ...cursor, values: 'text', limit: LIMIT }));
  return {
    title: `Changes of ${diff.resource}`,
    body: <DiffView run={run} diff={diff} filters={{ resource: diff.resource, ...filters }} />,
  };
}

interface DiffViewProps {
  readonly run: RunModel;
  readonly diff: DiffModel;
  readonly filters: Readonly<Record<string, string>>;
}

function DiffView({ run, diff, filters }: DiffViewProps) {
  const { id, environment, company_id, company_name } = run;
  return (
    <>
      <h1>What changed in {diff.resource}</h1>
      <p class="under">
        <Environment name={environment} />
        <CompanyLink environment={environment} companyId={company_id} name={company_name} />
      </p>
      <p>
        <Link to={`/runs/${id}`}>This run</Link> compared with{' '}
        {diff.against === null ? (
          'nothing: no run walked the list before'
        ) : (
          <Link to={`/runs/${diff.against}`}>the previous one</Link>
        )}
        .
      </p>
      {diff.values_hidden && <ValuesHidden />}
      <section id="diff" aria-label="Records that changed">
        {diff.data.length === 0 && (
          <p class="empty">{diff.next_cursor === null ? 'Nothing changed.' : 'Nothing changed among these records.'}</p>
        )}
        {diff.data.map((record) => (
          <RecordChanges key={record.id} record={record} of={{ ...run, resource: diff.resource }} isHidden={diff.values_hidden} />
        ))}
        <Pages path={`/runs/${id}/diff`} filters={filters} next={diff.next_cursor} />
      </section>
      <AsCommands commands={[get('These changes', listAddress(`/api/runs/${id}/diff`, filters))]} />
    </>
  );
}

const OPS: Readonly<Record<DiffItemModel['op'], string>> = {
  insert: 'new',
  update: 'changed',
  delete: 'deleted',
  restore: 'back',
};

interface RecordChangesProps {
  readonly record: DiffItemModel;
  readonly of: Omit<RecordPlace, 'id'>;
  readonly isHidden: boolean | undefined;
}

function RecordChanges({ record: { id, op, kept, changes }, of, isHidden }: RecordChangesProps) {
  return (
    <section class="card" aria-label={`Record ${id}`}>
      <p>
        <b>
          <RecordLink {...of} id={id} />
        </b>{' '}
        {OPS[op]}
      </p>
      {!kept && <p class="hint">The change feed no longer has both versions of this record.</p>}
      {changes.length > 0 && (
        <DataTable
          caption={`Members of ${id}`}
          columns={isHidden ? MEMBERS.slice(0, 1) : MEMBERS}
          rows={changes}
          keyOf={({ path }) => path}
          empty=""
        />
      )}
    </section>
  );
}

const MEMBERS: readonly Column<DiffItemModel['changes'][number]>[] = [
  column('Member', ({ path }) => path),
  column('Before', ({ before }) => <Value of={before} />),
  column('After', ({ after }) => <Value of={after} />),
];

/** A value as text; undefined if there is no such member. */
function Value({ of: text }: { readonly of?: unknown }) {
  return typeof text === 'string' ? <code>{text}</code> : <span class="none">none</span>;
}
