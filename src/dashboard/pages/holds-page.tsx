import type { HoldModel } from '../../api/runs/holds.js';
import { ActionForm, AsCommands, FormFields, useCommands, useMay } from '../parts/action-form.js';
import { ACTIONS } from '../parts/actions.js';
import { Field } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { choice, ENVIRONMENT, type ListProps, type ListResponse, listAddress, listPage } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, Link, numberText, State, When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';

const PATH = '/holds';

export const holdsPage = listPage<HoldModel>({
  path: PATH,
  title: 'Holds',
  limit: 25,
  lead: 'Deletions that wait for your decision: too many at once, or rows that a new authorization does not show.',
  filters: {
    status: choice('Status', ['open', 'approved', 'rejected', 'superseded']),
    cause: choice('Cause', ['share', 'grant'], {
      textOf: (cause) => (cause === 'share' ? 'too many at once' : 'authorized again'),
    }),
    environment: ENVIRONMENT,
  },
  // A person opens this page to decide, so decided holds are shown only on request.
  defaults: { status: 'open' },
  label: 'Holds found',
  Items: Holds,
});

function Holds({ list: { data }, filters }: ListProps<HoldModel>) {
  return (
    <>
      {data.length === 0 && (
        <p class="empty">{filters.status === 'open' ? 'Nothing waits for a decision.' : 'No hold matches.'}</p>
      )}
      {data.map((hold) => (
        <HoldCard key={hold.id} hold={hold} />
      ))}
      <ApproveGrantsLinks holds={data} />
    </>
  );
}

/** A link to the page approveGrantsPage for each environment with open holds of cause grant in the list. */
function ApproveGrantsLinks({ holds }: { readonly holds: readonly HoldModel[] }) {
  const may = useMay();
  if (!may('holds.approve_grants')) return null;
  const isOfGrant = ({ status, cause }: HoldModel) => status === 'open' && cause === 'grant';
  const environments = [...new Set(holds.filter(isOfGrant).map(({ environment }) => environment))];
  return environments.map((environment) => (
    <p key={environment}>
      <Link to={`/holds/approve-grants/${environment}`}>Approve all of cause grant in {environment}</Link>
    </p>
  ));
}

/** Asks for confirmation, since one button decides on many companies. */
export async function approveGrantsPage({ ask, params: { environment = '' } }: PageRequest): Promise<PageContent> {
  const filters = { environment, status: 'open', cause: 'grant', limit: '1' };
  const { data } = await ask<ListResponse<HoldModel>>(listAddress('/api/holds', filters));
  return {
    title: 'Approve all of cause grant',
    body: <ApproveGrantsView environment={environment} isEmpty={data.length === 0} />,
  };
}

function ApproveGrantsView({ environment, isEmpty }: { readonly environment: string; readonly isEmpty: boolean }) {
  const fields = { environment };
  const commands = useCommands(['holds.approve_grants'], fields);
  return (
    <div class="card narrow">
      <h1>Approve all of cause grant?</h1>
      <p>
        Rows that the new authorizations do not show are marked deleted, in every company of this environment. Approve them only
        if you know that the people who authorized may see all records.
      </p>
      <p class="under">
        <Environment name={environment} />
      </p>
      <div class="actions">
        {isEmpty ? 'No hold of this cause is open.' : <ActionForm name="holds.approve_grants" fields={fields} back={PATH} />}
        <Link to={PATH}>Decide one by one</Link>
      </div>
      <AsCommands commands={commands} />
    </div>
  );
}

interface SamplesProps extends Pick<HoldModel, 'samples' | 'count'> {
  /** A person who has to decide sees the records at once. */
  readonly isOpen: boolean;
}

/** The records that would be deleted, with their labels. */
function Samples({ samples, count, isOpen }: SamplesProps) {
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

/** Enter presses the first button, so that is the one that deletes nothing. */
function Decision({ id, describedBy }: { readonly id: string; readonly describedBy: string }) {
  const address = useAddress();
  const may = useMay();
  if (!DECISIONS.every(may)) return null;
  return (
    <form class="decision" method="post" action={address(`/act/${DECISIONS[0]}`)}>
      <FormFields fields={{ id, back: PATH }} />
      <Field label="Why, for the audit">
        <input type="text" name="reason" maxLength={500} />
      </Field>
      {DECISIONS.map((name) => (
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

function HoldCard({ hold }: { readonly hold: HoldModel }) {
  const { id, environment, company_id, company_name, resource, cause, count, samples, status } = hold;
  const heading = `hold-${id}`;
  const commands = useCommands(['hold.approve', 'hold.reject'], { id });
  return (
    <section class="card" aria-labelledby={heading}>
      <h2 id={heading}>
        {numberText(count)} of {numberText(hold.living)} rows of {resource} would be deleted
      </h2>
      <p class="under">
        <State of={status} />
        <Environment name={environment} />
        <CompanyLink environment={environment} companyId={company_id} name={company_name} />
        <span>
          since <When at={hold.opened_at} />
        </span>
        <Link to={`/runs/${hold.run_id}`}>The run that found it</Link>
      </p>
      {cause === 'grant' && <p>{hold.explanation}</p>}
      {samples.length > 0 && <Samples samples={samples} isOpen={status === 'open'} count={count} />}
      {status === 'open' && (
        <>
          <p class="hint">
            {cause === 'grant'
              ? 'Approve if the records no longer exist: they are marked deleted. Reject if only the person who authorized cannot see them: they stay, and Muster asks again only after another authorization.'
              : 'Approve if the records no longer exist: they are marked deleted. Reject if the service was wrong: they stay, and the next walk checks again.'}
          </p>
          <Decision id={id} describedBy={heading} />
          <AsCommands commands={commands} />
        </>
      )}
    </section>
  );
}
