import type { RecordModel, VersionModel } from '../../api/companies/records.js';
import { AsCommands, get, useMay } from '../parts/action-form.js';
import { ofCompany } from '../parts/actions.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, listAddress } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { recordPath } from '../parts/record-links.js';
import { CompanyLink, Environment, Fact, Link, numberText, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

/** One record: its present text, its state, and what changed in it. */
export async function recordPage({ ask, params, query }: PageRequest): Promise<PageContent> {
  const { resource = '' } = params;
  const id = params['*'] ?? query.get('id') ?? '';
  const { before } = filtersOf(query, ['before']);
  const record = await ask<RecordModel>(
    listAddress(`${ofCompany(params)}/record`, { resource, id, ...(before !== undefined && { before }) }),
  );
  return { title: record.label, body: <RecordView record={record} isOlder={before !== undefined} /> };
}

function RecordView({ record, isOlder }: { readonly record: RecordModel; readonly isOlder: boolean }) {
  const { environment, company_id, company_name, resource, id, label, state, text, members } = record;
  const may = useMay();
  const address = useAddress();
  const call = `${ofCompany({ environment, company_id })}/record`;
  return (
    <>
      <div class="head">
        <div>
          <h1>{label}</h1>
          <p class="under">
            <RecordState record={record} />
            <Environment name={environment} />
            <CompanyLink environment={environment} companyId={company_id} name={company_name} />
            <span>
              {resource} <code class="long">{id}</code>
            </span>
          </p>
        </div>
        {may('record.forget') && (
          <form class="action" method="get" action={address(`/companies/${environment}/${company_id}/forget`)}>
            <input type="hidden" name="resource" value={resource} />
            <input type="hidden" name="id" value={id} />
            <button class="danger">Erase this person…</button>
          </form>
        )}
      </div>
      {state === 'unknown' && <Unknown record={record} />}
      <Facts record={record} />
      <History record={record} isOlder={isOlder} />
      {text !== null && (
        <section aria-labelledby="present">
          <h2 id="present">{state === 'deleted' ? 'As it was last' : 'As it is now'}</h2>
          <DataTable
            caption="Members of the record"
            columns={MEMBERS}
            rows={members}
            keyOf={({ path }) => path}
            empty="No members."
          />
          <details>
            <summary>As JSON</summary>
            <pre class="json" tabIndex={0} aria-label="The record as JSON">
              {text}
            </pre>
          </details>
        </section>
      )}
      <p class="hint">
        Other lists may name the same person. The service does not say which, so Muster cannot show them here: search each list
        for the name. Child lists are known, and are erased with their parent.
      </p>
      <AsCommands
        commands={[
          get('This record', listAddress(call, { resource, id })),
          get('Its changes in the feed', listAddress('/api/changes', { environment, company_id, resource, id })),
        ]}
      />
    </>
  );
}

const STATES: Readonly<Record<RecordModel['state'], readonly [text: string, tone: string]>> = {
  living: ['Living', 'good'],
  deleted: ['Deleted', 'quiet'],
  unknown: ['Unknown', 'warn'],
};

function RecordState({ record: { state, forgotten } }: { readonly record: RecordModel }) {
  const [text, tone] = forgotten ? ['Forgotten', 'quiet'] : STATES[state];
  return <span class={`state ${tone}`}>{text}</span>;
}

function Unknown({ record }: { readonly record: RecordModel }) {
  const { forgotten, similar, resource, history } = record;
  return (
    <div class="notice">
      <p>
        {forgotten
          ? 'This record was forgotten. It is kept out of every sync.'
          : `The mirror has no record of ${resource} with this id${history.length > 0 ? ' any more' : ''}.`}
      </p>
      {similar.length > 0 && (
        <p>
          Did you mean{' '}
          {similar.map((each, n) => (
            <>
              {n > 0 && ', '}
              <Link key={each} to={recordPath({ ...record, id: each })}>
                {each}
              </Link>
            </>
          ))}
          ?
        </p>
      )}
    </div>
  );
}

function Facts({
  record: { first_seen_at, changed_at, deleted_at, resource, list, children },
}: {
  readonly record: RecordModel;
}) {
  return (
    <dl class="facts">
      {first_seen_at && (
        <Fact name="First seen">
          <When at={first_seen_at} />
        </Fact>
      )}
      {changed_at && (
        <Fact name="Changed">
          <When at={changed_at} />
        </Fact>
      )}
      {deleted_at && (
        <Fact name="Deleted">
          <When at={deleted_at} />
        </Fact>
      )}
      <Fact name={`${resource} complete as of`}>
        {list.last_run_id === null ? (
          <When at={list.last_verified_at} />
        ) : (
          <Link to={`/runs/${list.last_run_id}`}>
            <When at={list.last_verified_at} />
          </Link>
        )}
      </Fact>
      {children.map((child) => (
        <Fact key={child.resource} name={`Of it in ${child.resource}`}>
          {numberText(child.records)}
        </Fact>
      ))}
    </dl>
  );
}

function History({ record, isOlder }: { readonly record: RecordModel; readonly isOlder: boolean }) {
  const { history, next_before } = record;
  const path = recordPath(record);
  return (
    <section id="history" aria-labelledby="history-heading">
      <h2 id="history-heading">History, newest first</h2>
      {history.length === 0 && <p class="empty">The change feed has nothing of this record.</p>}
      {history.map((version) => (
        <Version key={version.seq} version={version} />
      ))}
      {(isOlder || next_before !== null) && (
        <nav class="pages" aria-label="Pages of the history">
          {isOlder && <Link to={path}>Newest versions</Link>}
          {next_before !== null && (
            <Link to={`${path}${path.includes('?') ? '&' : '?'}before=${next_before}`}>Older versions</Link>
          )}
        </nav>
      )}
    </section>
  );
}

const OPS: Readonly<Record<VersionModel['op'], string>> = {
  insert: 'New',
  update: 'Changed',
  delete: 'Deleted',
  restore: 'Back',
};

function Version({ version: { seq, op, changed_at, run_id, kept, changes } }: { readonly version: VersionModel }) {
  return (
    <section class="card" aria-label={`${OPS[op]}, number ${seq} of the feed`}>
      <p>
        <b>{OPS[op]}</b> <When at={changed_at} />
        {run_id !== null && (
          <>
            {' '}
            in <Link to={`/runs/${run_id}`}>a run</Link>
          </>
        )}{' '}
        <small>no. {seq} of the feed</small>
      </p>
      {!kept && <p class="hint">The change feed no longer has both versions.</p>}
      {changes.length > 0 && (
        <DataTable caption={`Members of number ${seq}`} columns={CHANGES} rows={changes} keyOf={({ path }) => path} empty="" />
      )}
    </section>
  );
}

const CHANGES: readonly Column<VersionModel['changes'][number]>[] = [
  column('Member', ({ path }) => path),
  column('Before', ({ before }) => <Value of={before} />),
  column('After', ({ after }) => <Value of={after} />),
];

const MEMBERS: readonly Column<RecordModel['members'][number]>[] = [
  column('Member', ({ path }) => path),
  column('Value', ({ value }) => <Value of={value} />),
];

/** A value as JSON text; undefined if there is no such member. */
function Value({ of: text }: { readonly of?: string | undefined }) {
  return text === undefined ? <span class="none">none</span> : <code class="long">{text}</code>;
}
