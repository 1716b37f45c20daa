import type { HoldModel } from '../../api/runs/hold-model.js';
import type { RowOfHoldModel } from '../../api/runs/hold-rows.js';
import { isMusterError } from '../../core/errors.js';
import { AsCommands, FormFields, get, useCommands, useMay } from '../parts/action-form.js';
import { ACTIONS } from '../parts/actions.js';
import { type Column, column, DataTable } from '../parts/data-table.js';
import { Field } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, type ListResponse, listAddress, Pages } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, Link, numberText, State, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { type ShownProblem } from './problem-page.js';

const LIMIT = 50;

/** The page of one hold: every row that would go, and the decision. The button Approve of the list leads here, with the reason that was typed there. */
export async function holdPage(
  { ask, params: { id = '' }, query }: PageRequest,
  { reason = '', back = '/holds' }: { readonly reason?: string | undefined; readonly back?: string } = {},
): Promise<PageContent> {
  const path = `/api/holds/${encodeURIComponent(id)}` as const;
  const hold = await ask<HoldModel>(path);
  const rows = hold.status === 'open' ? await rowsOf() : undefined;
  return {
    title: hold.status === 'open' ? `Delete rows of ${hold.resource}?` : `Hold of ${hold.resource}`,
    body: <HoldView hold={hold} rows={rows} reason={reason} back={back} />,
  };

  /** The rows; or why they cannot be told now, which is also why the hold cannot be approved now. */
  async function rowsOf(): Promise<ListResponse<RowOfHoldModel> | ShownProblem> {
    const address = listAddress(`${path}/rows`, { limit: LIMIT, ...filtersOf(query, ['cursor']) }) as '/api/holds';
    return ask<ListResponse<RowOfHoldModel>>(address).catch((error: unknown) => {
      if (isMusterError(error, 'hold_not_open')) return error as typeof error & ShownProblem;
      throw error;
    });
  }
}

interface HoldViewProps {
  readonly hold: HoldModel;
  /** Undefined for a decided hold. */
  readonly rows: ListResponse<RowOfHoldModel> | ShownProblem | undefined;
  readonly reason: string;
  readonly back: string;
}

function HoldView({ hold, rows, reason, back }: HoldViewProps) {
  const { id, count, living, resource, samples, status } = hold;
  const commands = useCommands(['hold.approve', 'hold.reject'], { id });
  const isTold = rows !== undefined && 'data' in rows;
  return (
    <>
      <h1>
        <span id="question">
          {status === 'open'
            ? `Delete ${numberText(count)} of ${numberText(living)} rows of ${resource}?`
            : `${numberText(count)} of ${numberText(living)} rows of ${resource}`}
        </span>
      </h1>
      <AboutHold hold={hold} />
      {status === 'open' && (
        <section class="card" aria-labelledby="question">
          <p>{whatToDo(hold)}</p>
          {rows !== undefined && 'detail' in rows && <p role="alert">{rows.detail}</p>}
          <DecisionForm id={id} describedBy="question" back={back} reason={reason} ofRun={hold.run_id} mayApprove={isTold} />
        </section>
      )}
      {isTold ? <Rows hold={hold} rows={rows} /> : samples.length > 0 && <Samples samples={samples} count={count} isOpen />}
      <p>
        <Link to="/holds">All holds</Link>
      </p>
      <AsCommands
        commands={[
          ...(status === 'open' ? [...commands, get('The rows', `/api/holds/${id}/rows`)] : []),
          get('This hold', `/api/holds/${id}`),
        ]}
      />
    </>
  );
}

function Rows({ hold: { id, resource }, rows }: { readonly hold: HoldModel; readonly rows: ListResponse<RowOfHoldModel> }) {
  const address = useAddress();
  const mayDecide = useMay()('hold.approve');
  return (
    <section aria-labelledby="rows">
      <h2 id="rows">The rows</h2>
      {!mayDecide && <p class="hint">Values of records are shown to operators and admins.</p>}
      <p>
        <a href={address(`/holds/${id}/rows.csv`)} download={`${resource}-${id}.csv`}>
          Download all as CSV
        </a>
      </p>
      <DataTable
        caption={`Rows of ${resource} that would be deleted`}
        columns={mayDecide ? [ID, LABEL] : [ID]}
        rows={rows.data}
        keyOf={(row) => row.id}
        empty="No row waits any more."
      />
      <Pages path={`/holds/${id}`} filters={{}} next={rows.next_cursor} />
    </section>
  );
}

const ID: Column<RowOfHoldModel> = column('Id', ({ id }) => <code>{id}</code>);
const LABEL: Column<RowOfHoldModel> = column('Name', ({ label }) => label ?? <span class="none">none</span>);

/** The company of the rows, since when they wait, and who decided. */
export function AboutHold({ hold }: { readonly hold: HoldModel }) {
  const { environment, company_id, company_name, cause, status, run_id, opened_at, explanation } = hold;
  const { decided_at, decided_by, reason } = hold;
  return (
    <>
      <p class="under">
        <State of={status} />
        <Environment name={environment} />
        <CompanyLink environment={environment} companyId={company_id} name={company_name} />
        <span>
          since <When at={opened_at} />
        </span>
        <Link to={`/runs/${run_id}`}>The run that found it</Link>
      </p>
      {decided_at !== undefined && (
        <p>
          {status === 'approved' ? 'Approved' : 'Rejected'}
          {decided_by !== undefined && (
            <>
              {' '}
              by <b>{decided_by}</b>
            </>
          )}{' '}
          <When at={decided_at} />
          {reason === undefined ? ', without a reason.' : <>: {reason}</>}
        </p>
      )}
      {cause === 'grant' && <p>{explanation}</p>}
    </>
  );
}

export function whatToDo({ cause }: HoldModel): string {
  return cause === 'grant'
    ? 'Approve if the records no longer exist: they are marked deleted. Reject if only the person who authorized cannot see them: they stay, and Muster asks again only after another authorization.'
    : 'Approve if the records no longer exist: they are marked deleted. Reject if the service was wrong: they stay, and the next walk checks again.';
}

interface SamplesProps extends Pick<HoldModel, 'samples' | 'count'> {
  /** A person who has to decide sees the records at once. */
  readonly isOpen: boolean;
}

/** Some of the records, with their labels. */
export function Samples({ samples, count, isOpen }: SamplesProps) {
  return (
    <details open={isOpen}>
      <summary>{samples.length < count ? `${numberText(samples.length)} of them` : 'All of them'}</summary>
      <ul class="ids">
        {samples.map(({ id, label }) => (
          <li key={id}>
            {label && <b>{label}</b>} <code>{id}</code>
          </li>
        ))}
      </ul>
    </details>
  );
}

const DECISIONS = ['hold.reject', 'hold.approve'] as const;

interface DecisionFormProps {
  readonly id: string;
  readonly describedBy: string;
  readonly back: string;
  readonly reason?: string;
  /** The run whose rows the page shows, so that Approve acts on them. Without it, Approve leads to that page. */
  readonly ofRun?: string;
  readonly mayApprove?: boolean;
}

/** Enter presses the first button, so that is the one that deletes nothing. */
export function DecisionForm({ id, describedBy, back, reason, ofRun, mayApprove = true }: DecisionFormProps) {
  const address = useAddress();
  const may = useMay();
  if (!DECISIONS.every(may)) return null;
  return (
    <form class="decision" method="post" action={address(`/act/${DECISIONS[0]}`)}>
      <FormFields fields={{ id, back, ...(ofRun && { run_id: ofRun, confirmed: 'yes' }) }} />
      <Field label="Why, for the audit">
        <input type="text" name="reason" maxLength={500} value={reason} />
      </Field>
      {DECISIONS.filter((name) => mayApprove || name === 'hold.reject').map((name) => (
        <button
          key={name}
          class={name === 'hold.approve' ? 'danger' : undefined}
          formAction={address(`/act/${name}`)}
          aria-describedby={describedBy}
        >
          {ACTIONS[name].label}
        </button>
      ))}
    </form>
  );
}
