import type { IssueModel } from '../../api/operation/issues.js';
import type { QueuedModel, SyncPreviewModel } from '../../api/runs/syncs.js';
import { causeOf } from '../../core/issue-causes.js';
import { ActionForm, AsCommands, get, useCommands } from '../parts/action-form.js';
import type { ActionName } from '../parts/actions.js';
import type { PageContent } from '../parts/layout.js';
import { filtersOf, listAddress } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { CompanyLink, companyCount, Environment, Link, numberText } from '../parts/shown-values.js';

const FILTERS = ['issue_id', 'status', 'environment'];

/** Asks before many companies are synced: which companies, which lists, how many. Its address names the companies, so other pages link to it. */
export async function syncPage({ ask, query }: PageRequest): Promise<PageContent> {
  const filters = filtersOf(query, FILTERS);
  const { issue_id } = filters;
  const [preview, issue] = await Promise.all([
    ask<SyncPreviewModel>(listAddress('/api/syncs', filters)),
    issue_id === undefined ? undefined : ask<IssueModel>(`/api/issues/${encodeURIComponent(issue_id)}`),
  ]);
  const back = issue ? '/' : '/runs';
  return {
    title: `Sync ${companyCount(preview.companies)}`,
    body: <AskToSync preview={preview} issue={issue} filters={filters} back={back} />,
  };
}

interface AskToSyncProps {
  readonly preview: SyncPreviewModel;
  readonly issue: IssueModel | undefined;
  readonly filters: Readonly<Record<string, string>>;
  readonly back: string;
}

function AskToSync({ preview, issue, filters, back }: AskToSyncProps) {
  const { companies, resources, sample, skipped_count = 0 } = preview;
  const name: ActionName = issue ? 'issue.sync' : 'companies.sync';
  const fields = { ...filters, count: String(companies) };
  const commands = useCommands([name], fields);
  return (
    <div class="card narrow">
      <h1>{companies === 0 ? 'No company to sync' : `Sync ${companyCount(companies)}?`}</h1>
      <p class="under">
        {filters['environment'] ? <Environment name={filters['environment']} /> : <span>both environments</span>}
        <span>{chosenText(issue, filters)}</span>
      </p>
      <p>
        {resources === null ? 'Every list is read' : `Only ${resources.join(', ')} is read`}, from the last checkpoint where a run
        left one. A company whose run is under way keeps that run.{' '}
        {`An open hold of ${resources === null ? 'such a list' : 'this list'} is replaced by what the new walk finds: decide on it before, if you know the answer.`}
      </p>
      {sample.length > 0 && (
        <ul class="ids">
          {sample.map(({ environment, company_id, company_name }) => (
            <li key={`${environment}/${company_id}`}>
              <CompanyLink environment={environment} companyId={company_id} name={company_name} />
            </li>
          ))}
          {companies > sample.length && <li>and {numberText(companies - sample.length)} more</li>}
        </ul>
      )}
      {skipped_count > 0 && (
        <p class="hint">{companyCount(skipped_count)} more cannot be synced now: paused, or must authorize again.</p>
      )}
      <div class="actions">
        {companies > 0 && <ActionForm name={name} fields={{ ...fields, confirmed: 'yes' }} back={back} />}
        <Link to={back}>Do nothing</Link>
        <AsCommands commands={[...commands, get('Which companies', listAddress('/api/syncs', filters))]} />
      </div>
    </div>
  );
}

function chosenText(issue: IssueModel | undefined, { status }: Readonly<Record<string, string>>): string {
  if (issue) return `${causeOf(issue.cause).title}${issue.resource ? `: ${issue.resource}` : ''}, ${issue.environment}`;
  return status === 'failed' ? 'whose last run failed' : 'every active company';
}

/** The page after a sync that reached fewer companies than were named. */
export function syncedPage(queued: QueuedModel, back: string): PageContent {
  return { title: 'Sync', body: <Synced queued={queued} back={back} /> };
}

export const WHY_SKIPPED = {
  company_paused: 'It is paused: resume it first.',
  reauthorization_required: 'It must authorize again.',
} as const;

function Synced({
  queued: { queued, skipped = [], skipped_count = 0 },
  back,
}: {
  readonly queued: QueuedModel;
  readonly back: string;
}) {
  return (
    <div class="card narrow">
      <h1>{queued === 0 ? 'No company is synced' : `A sync of ${companyCount(queued)} was requested`}</h1>
      {skipped_count === 0 ? (
        <p role="status">No company matches any more.</p>
      ) : (
        <p role="status">{companyCount(skipped_count)} cannot be synced now:</p>
      )}
      {skipped.length > 0 && (
        <ul class="problems">
          {skipped.map(({ environment, company_id, company_name, code }) => (
            <li key={`${environment}/${company_id}`}>
              <CompanyLink environment={environment} companyId={company_id} name={company_name} />
              <p>{WHY_SKIPPED[code]}</p>
            </li>
          ))}
          {skipped_count > skipped.length && <li>and {numberText(skipped_count - skipped.length)} more</li>}
        </ul>
      )}
      <p>
        <Link to={back}>Back</Link>
      </p>
    </div>
  );
}
