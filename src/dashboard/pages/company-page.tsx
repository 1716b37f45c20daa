import type { CompanyModel } from '../../api/companies/company-model.js';
import type { ListHistoryModel } from '../../api/operation/nights.js';
import type { RejectedRecordModel } from '../../api/runs/rejected-records.js';
import type { RunModel } from '../../api/runs/run-model.js';
import { ActionForm, AsCommands, get, useCommands, useMay } from '../parts/action-form.js';
import { type ActionName, ofCompany } from '../parts/actions.js';
import { certificatesOf } from '../parts/certificate-link.js';
import { counts } from '../parts/columns.js';
import { cureOf, Trouble } from '../parts/company-trouble.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';
import { type ListResponse, listAddress } from '../parts/list-page.js';
import { ListPlots } from '../parts/list-plots.js';
import { ListState } from '../parts/list-state.js';
import type { PageRequest } from '../parts/page-request.js';
import { FindRecord } from '../parts/record-links.js';
import { Environment, Fact, Link, numberText, State, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { PLACE, REASON } from './rejected-page.js';
import { RunTable } from './runs-page.js';

export async function companyPage({ ask, params }: PageRequest): Promise<PageContent> {
  const path = ofCompany(params);
  const company = await ask<CompanyModel>(path);
  const filter = { company_id: company.company_id, environment: company.environment };
  const [runs, rejected, history] = await Promise.all([
    ask<ListResponse<RunModel>>(listAddress('/api/runs', { ...filter, limit: 15 })),
    ask<ListResponse<RejectedRecordModel>>(listAddress('/api/rejected', { ...filter, limit: 10 })),
    ask<{ data: readonly ListHistoryModel[] }>(`${path}/history`),
  ]);
  return {
    title: company.name ?? company.company_id,
    body: <CompanyView company={company} runs={runs} rejected={rejected.data} history={history.data} />,
  };
}

interface CompanyViewProps {
  readonly company: CompanyModel;
  readonly runs: ListResponse<RunModel>;
  readonly rejected: readonly RejectedRecordModel[];
  readonly history: readonly ListHistoryModel[];
}

function CompanyView({ company, runs, rejected, history }: CompanyViewProps) {
  const { environment, company_id, name, status, resources } = company;
  const may = useMay();
  const running = runs.data.find((run) => run.status === 'running' || run.status === 'queued');
  return (
    <>
      <div class="head">
        <div>
          <h1>{name ?? company_id}</h1>
          <p class="under">
            <State of={status} />
            {company.paused && status !== 'paused' && <State of="paused" />}
            <Environment name={environment} />
            <span class="id">{company_id}</span>
          </p>
        </div>
        <Actions company={company} cure={cureOf({ company, running })} />
      </div>
      {running && (
        <p class="notice busy">
          <State of={running.status} /> <Link to={`/runs/${running.id}`}>Watch the run</Link>
        </p>
      )}
      <Trouble company={company} running={running} hasRejected={rejected.length > 0} />
      <FindRecord environment={environment} company_id={company_id} />
      <dl class="facts">
        <Fact name="Next sync">
          <When at={company.next_sync_at} none={status === 'active' ? 'with the schedule' : 'none'} />
        </Fact>
        <Fact name="Quiet hours">
          {company.quiet_hours ?? 'as the installation'}
          {company.quiet_until && (
            <>
              , until <When at={company.quiet_until} />
            </>
          )}
          {may('company.quiet_hours') && (
            <>
              {' '}
              <Link to={`/companies/${environment}/${company_id}/quiet-hours`}>
                Change<span class="unseen"> the quiet hours</span>
              </Link>
            </>
          )}
        </Fact>
        <Fact name="Access token ends">
          <When at={company.token.expires_at} none="unknown" />
        </Fact>
        <Fact name="Authorized">
          <When at={company.grant.authorized_at} /> (grant {company.grant.number})
        </Fact>
        <Fact name="Token refreshed">
          <When at={company.token.refreshed_at} />
        </Fact>
      </dl>
      <h2>Lists</h2>
      <DataTable
        caption="The lists of this company, their rows and their last proofs"
        rows={resources}
        keyOf={({ resource }) => resource}
        empty="No list has been requested yet."
        columns={[
          ...LISTS,
          ...(resources.some((list) => list.next_sync_at !== undefined) ? [NEXT_SYNC] : []),
          certificatesOf({ environment, company_id }),
        ]}
      />
      <h2>Night by night</h2>
      <ListPlots lists={history} />
      <AsCommands commands={[get('Rows and changes a night', `${ofCompany({ environment, company_id })}/history`)]} />
      {rejected.length > 0 && (
        <>
          <h2>Rejected records</h2>
          <p>
            <Link to={listAddress('/rejected', { environment, company_id })}>All rejected records, with their texts</Link>
          </p>
          <AsCommands commands={[get('With their texts', listAddress('/api/rejected', { environment, company_id }))]} />
          <DataTable
            caption="The first records that the newest walks rejected"
            columns={REJECTED}
            rows={rejected}
            keyOf={({ resource, page, position }) => `${resource} ${page} ${position}`}
            empty=""
          />
        </>
      )}
      <h2>Runs</h2>
      <RunTable rows={runs.data} caption="The newest runs of this company" empty="No run yet." isOfOneCompany />
      {runs.next_cursor !== null && (
        <p>
          <Link to={listAddress('/runs', { company_id, environment })}>All runs of this company</Link>
        </p>
      )}
    </>
  );
}

const LISTS: readonly Column<CompanyModel['resources'][number]>[] = [
  column('List', ({ resource }) => <b>{resource}</b>),
  column('State', (list) => <ListState list={list} />),
  counts('Rows', ({ records }) => records),
  column('Proved complete', ({ last_verified_at }) => <When at={last_verified_at} none="not yet" />),
  column('Last run', ({ resource, last_run_id }) => <LastRun resource={resource} id={last_run_id} />),
];

/** A list without a schedule of its own is walked with the night. */
const NEXT_SYNC: Column<CompanyModel['resources'][number]> = column('Next sync', ({ next_sync_at }) => (
  <When at={next_sync_at ?? null} none="with the night" />
));

const REJECTED: readonly Column<RejectedRecordModel>[] = [column('List', ({ resource }) => <b>{resource}</b>), REASON, PLACE];

function LastRun({ resource, id }: { readonly resource: string; readonly id: string | null }) {
  if (id === null) return <span class="none">none</span>;
  return (
    <Link to={`/runs/${id}`}>
      Look at it<span class="unseen">: the last run of {resource}</span>
    </Link>
  );
}

interface ActionsProps {
  readonly company: CompanyModel;
  /** The button that is next to the trouble. */
  readonly cure: ActionName | undefined;
}

function Actions({ company: { environment, company_id, status, paused }, cure }: ActionsProps) {
  const address = useAddress();
  const may = useMay();
  const fields = { environment, company_id };
  const names: ActionName[] = [
    ...(status === 'active' ? (['company.sync', 'company.full', 'company.verify'] as const) : []),
    paused ? 'company.resume' : 'company.pause',
    'company.link',
  ];
  const commands = useCommands([...names, 'company.remove'], fields);
  return (
    <div class="actions">
      {/* Resuming has no effect while the company must authorize again. */}
      {names
        .filter((name) => name !== cure && (name !== 'company.resume' || status === 'paused'))
        .map((name) => (
          <ActionForm key={name} name={name} fields={fields} />
        ))}
      {may('record.forget') && (
        <form class="action" method="get" action={address(`/companies/${environment}/${company_id}/forget`)}>
          <button>Forget a person</button>
        </form>
      )}
      {may('company.remove') && (
        <form class="action" method="get" action={address(`/companies/${environment}/${company_id}/remove`)}>
          <button class="danger">Remove</button>
        </form>
      )}
      <AsCommands commands={commands} />
    </div>
  );
}

/** Asks for confirmation, since only a new authorization and a new first sync undo a removal. */
export async function removePage({ ask, params }: PageRequest): Promise<PageContent> {
  const company = await ask<CompanyModel>(ofCompany(params));
  return { title: `Remove ${company.name ?? company.company_id}`, body: <RemoveView company={company} /> };
}

function RemoveView({ company }: { readonly company: CompanyModel }) {
  const { environment, company_id, name, resources } = company;
  const rows = resources.reduce((sum, { records }) => sum + records, 0);
  const fields = { environment, company_id };
  return (
    <div class="card narrow">
      <h1>Remove {name ?? company_id}?</h1>
      <p>
        This deletes its tokens and its {numberText(rows)} mirrored rows at once. Runs and audit stay. To bring it back, the
        company must authorize again, and Muster mirrors everything again.
      </p>
      <p class="under">
        <Environment name={environment} /> <span class="id">{company_id}</span>
      </p>
      <div class="actions">
        <ActionForm name="company.remove" fields={fields} back="/companies" />
        <Link to={`/companies/${environment}/${company_id}`}>Keep it</Link>
      </div>
      <AsCommands commands={useCommands(['company.remove'], fields)} />
    </div>
  );
}
