import type { HoldModel } from '../../api/runs/hold-model.js';
import { ActionForm, AsCommands, useCommands, useMay } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { choice, ENVIRONMENT, type ListProps, type ListResponse, listAddress, listPage } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, Environment, Link, numberText } from '../parts/shown-values.js';
import { AboutHold, DecisionForm, Samples, whatToDo } from './hold-page.js';

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
  const filters = { environment, status: 'open', cause: 'grant', limit: String(NAMED) };
  const { data, next_cursor } = await ask<ListResponse<HoldModel>>(listAddress('/api/holds', filters));
  return {
    title: 'Approve all of cause grant',
    body: <ApproveGrantsView environment={environment} holds={data} hasMore={next_cursor !== null} />,
  };
}

/** Holds that the question names. */
const NAMED = 20;

interface ApproveGrantsViewProps {
  readonly environment: string;
  readonly holds: readonly HoldModel[];
  readonly hasMore: boolean;
}

function ApproveGrantsView({ environment, holds, hasMore }: ApproveGrantsViewProps) {
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
      <ul class="ids">
        {holds.map(({ id, company_id, company_name, resource, count }) => (
          <li key={id}>
            <CompanyLink environment={environment} companyId={company_id} name={company_name} />{' '}
            <Link to={`${PATH}/${id}`}>
              {numberText(count)} rows of {resource}
            </Link>
          </li>
        ))}
        {hasMore && <li>and more, 200 holds at a time</li>}
      </ul>
      <div class="actions">
        {holds.length === 0 ? (
          'No hold of this cause is open.'
        ) : (
          <ActionForm name="holds.approve_grants" fields={fields} back={PATH} />
        )}
        <Link to={PATH}>Decide one by one</Link>
      </div>
      <AsCommands commands={commands} />
    </div>
  );
}

function HoldCard({ hold }: { readonly hold: HoldModel }) {
  const { id, resource, count, samples, status } = hold;
  const heading = `hold-${id}`;
  const commands = useCommands(['hold.approve', 'hold.reject'], { id });
  return (
    <section class="card" aria-labelledby={heading}>
      <h2 id={heading}>
        {numberText(count)} of {numberText(hold.living)} rows of {resource} would be deleted
      </h2>
      <AboutHold hold={hold} />
      {samples.length > 0 && <Samples samples={samples} isOpen={status === 'open'} count={count} />}
      {status === 'open' && (
        <>
          <p class="hint">{whatToDo(hold)}</p>
          <DecisionForm id={id} describedBy={heading} back={PATH} />
        </>
      )}
      <p>
        <Link to={`${PATH}/${id}`} describedBy={heading}>
          {status === 'open' ? 'All rows' : 'More about it'}
        </Link>
      </p>
      {status === 'open' && <AsCommands commands={commands} />}
    </section>
  );
}
