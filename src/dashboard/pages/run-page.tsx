import type { CompanyModel } from '../../api/companies/company-model.js';
import { failureOf } from '../../api/runs/run-failure.js';
import type { RunModel, WalkModel } from '../../api/runs/run-model.js';
import { isMusterError } from '../../core/errors.js';
import { ActionForm, AsCommands, get, useCommands } from '../parts/action-form.js';
import { ofCompany } from '../parts/actions.js';
import { Failure, FirstFailure, isOver } from '../parts/first-failure.js';
import type { PageContent } from '../parts/layout.js';
import { listAddress } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { proofInWords, unverifiedInWords } from '../parts/proof-in-words.js';
import { Count, ListSection, ReadingCard } from '../parts/reading-card.js';
import { RunProgress } from '../parts/run-progress.js';
import { ShownStatus } from '../parts/shown-status.js';
import {
  CompanyLink,
  Environment,
  Fact,
  Link,
  numberText,
  ServiceSays,
  State,
  triggerText,
  When,
} from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { Took } from './runs-page.js';

export async function runPage({ ask, params: { id = '' } }: PageRequest): Promise<PageContent> {
  const run = await ask<RunModel>(`/api/runs/${encodeURIComponent(id)}`);
  return { title: `Run of ${nameOf(run)}`, body: <RunView run={run} company={await companyOf(run, ask)} /> };
}

/** The company as it is now, where that says what to do about the run; undefined if it was removed. */
async function companyOf(run: RunModel, ask: PageRequest['ask']): Promise<CompanyModel | undefined> {
  if (run.company_removed || failureOf(run) === undefined) return undefined;
  return ask<CompanyModel>(ofCompany({ environment: run.environment, company_id: run.company_id })).catch((error: unknown) => {
    if (isMusterError(error, 'company_not_found')) return undefined;
    throw error;
  });
}

const nameOf = ({ company_name, company_id }: RunModel) => company_name || company_id;

interface RunProps {
  readonly run: RunModel;
  readonly company: CompanyModel | undefined;
}

function RunView({ run, company }: RunProps) {
  const address = useAddress();
  const failure = failureOf(run);
  const retry = company?.status === 'active' && failure ? retryOf(run) : undefined;
  const commands = [
    ...(isOver(run) ? [] : useCommands(['run.cancel'], { id: run.id })),
    ...(retry ? useCommands(['run.retry'], retry) : []),
    get('This run', `/api/runs/${run.id}`),
  ];
  return (
    // The script follows the events of the address, and loads this element again when the state of the run has changed.
    <div id="run" data-follow={isOver(run) ? undefined : address(`/runs/${run.id}/events`)} data-state={stateOf(run)}>
      <div class="head">
        <div>
          <h1>Run of {nameOf(run)}</h1>
          <p class="under">
            <ShownStatus of={run} />
            <Environment name={run.environment} />
            {run.company_removed ? (
              <span>
                <span class="id">{run.company_id}</span>, a company that was removed
              </span>
            ) : (
              <CompanyLink environment={run.environment} companyId={run.company_id} name={run.company_name} />
            )}
          </p>
        </div>
        <div class="actions">
          {retry && <ActionForm name="run.retry" fields={retry} />}
          {!isOver(run) && <ActionForm name="run.cancel" fields={{ id: run.id }} />}
          <AsCommands commands={commands} />
        </div>
      </div>
      {run.waits_until && (
        <p class="notice">
          The run waits for the end of the quiet hours, in which nothing is asked of the service: <When at={run.waits_until} />.
        </p>
      )}
      <RunProgress run={run} />
      {failure && <FirstFailure run={run} company={company} failure={failure} />}
      <Facts run={run} />
      <h2>Lists</h2>
      {run.walks.length === 0 && <p class="empty">No list has begun yet.</p>}
      {run.walks
        .toSorted((a, b) => rankOf(a) - rankOf(b))
        .map((walk) => {
          const isSaidAbove = walk.error?.message === failure?.message;
          if (run.kind === 'sync') return <WalkCard key={walk.resource} run={run} walk={walk} isSaidAbove={isSaidAbove} />;
          return (
            <ReadingCard key={walk.resource} walk={walk}>
              {walk.error && !isSaidAbove && <Failure {...walk.error} />}
            </ReadingCard>
          );
        })}
      {!isOver(run) && (
        <p class="hint" data-followed>
          <Link to={`/runs/${run.id}`}>Look again</Link>
        </p>
      )}
    </div>
  );
}

/** Failed lists come first, then the one that is read now, then those without a proof. Otherwise lists stay in their order. */
function rankOf({ status, verified, rejected, unverified_reason }: WalkModel): number {
  if (status === 'failed') return 0;
  if (status === 'running') return 1;
  return status === 'succeeded' &&
    (rejected > 0 || (!verified && unverified_reason !== undefined && unverified_reason !== 'unavailable'))
    ? 2
    : 3;
}

/** The fields of the button that tries again the lists that failed: all lists if none has begun. */
function retryOf({ environment, company_id, kind, walks }: RunModel): Readonly<Record<string, string>> {
  const failed = walks.filter(({ status }) => status === 'failed').map(({ resource }) => resource);
  return { environment, company_id, kind, ...(failed.length > 0 && { resources: failed.join(',') }) };
}

/** A text that changes whenever more than numbers of the page change. control-room.js makes the same text from an event. */
function stateOf({ status, attempts, walks }: RunModel): string {
  const ofWalk = (walk: WalkModel) => (walk.total_records === null ? walk.status : `${walk.status} of a number`);
  return [status, attempts, ...walks.map(ofWalk)].join(', ');
}

function Facts({ run }: { readonly run: RunModel }) {
  return (
    <dl class="facts">
      <Fact name="Why">
        {triggerText(run.trigger)},{' '}
        {run.kind === 'verify' ? 'changes nothing' : run.mode === 'full' ? 'reads everything' : 'from the last checkpoints'}
      </Fact>
      <Fact name="Requested">
        <When at={run.created_at} />
      </Fact>
      <Fact name="Started">
        <When at={run.started_at} none="not yet" />
      </Fact>
      <Fact name={isOver(run) ? 'Took' : 'Has taken'}>
        <Took run={run} />
      </Fact>
      <Fact name="Attempts">{numberText(run.attempts)}</Fact>
    </dl>
  );
}

const COUNTS = ['received', 'inserted', 'updated', 'unchanged', 'deleted', 'rejected'] as const;

interface WalkCardProps {
  readonly run: RunModel;
  readonly walk: WalkModel;
  /** The notice at the top has the same error. */
  readonly isSaidAbove: boolean;
}

function WalkCard({ run, walk, isSaidAbove }: WalkCardProps) {
  const { resource, status, received, total_records, pages, passes, resumed } = walk;
  const whole = total_records ?? 0;
  return (
    <ListSection walk={walk}>
      {status === 'running' && whole > 0 && (
        <progress max={whole} value={Math.min(received, whole)} aria-label={`Received of ${resource}`} data-count="received" />
      )}
      <dl class="counts">
        {COUNTS.map((name) => (
          <Count key={name} name={name} count={walk[name]} isBad={name === 'rejected' && walk.rejected > 0}>
            {name === 'received' && total_records !== null && <small> of {numberText(total_records)}</small>}
          </Count>
        ))}
        <Count name="pages" count={pages}>
          {passes > 1 && <small> in {numberText(passes)} passes</small>}
        </Count>
      </dl>
      <Outcome walk={walk} />
      {walk.hold && <Held resource={resource} hold={walk.hold} />}
      <WalkLinks run={run} walk={walk} />
      {resumed && <p class="hint">It continued from a checkpoint. The counts include the records received before.</p>}
      {walk.error && !isSaidAbove && <Failure {...walk.error} />}
      {!isSaidAbove && <ServiceSays sentence={walk.service_says} />}
    </ListSection>
  );
}

interface HeldProps {
  readonly resource: string;
  readonly hold: NonNullable<WalkModel['hold']>;
}

/** The deletions that the walk found and that wait, or what was decided about them. */
function Held({ resource, hold: { id, count, status } }: HeldProps) {
  return (
    <p class={status === 'open' ? 'proof warn' : 'proof'}>
      {numberText(count)} {count === 1 ? 'deletion was' : 'deletions were'} held back. <State of={status} />{' '}
      <Link to={`/holds/${id}`}>
        See the hold<span class="unseen"> of {resource}</span>
      </Link>
    </p>
  );
}

/** Where the changes, the rejected records and the certificate of a list are. */
function WalkLinks({ run, walk }: { readonly run: RunModel; readonly walk: WalkModel }) {
  const { resource, inserted, updated, deleted, rejected, verified, finished_at } = walk;
  const list = { environment: run.environment, company_id: run.company_id, resource };
  const ofList = <span class="unseen"> of {resource}</span>;
  if (run.company_removed) return null;
  return (
    <p class="links">
      {inserted + updated + deleted > 0 && (
        <Link to={`/runs/${run.id}/diff?resource=${resource}`}>
          What changed<span class="unseen"> in {resource}</span>
        </Link>
      )}
      {rejected > 0 && <Link to={listAddress('/rejected', list)}>Rejected records{ofList}</Link>}
      {verified && (
        // The newest of these is the certificate of this walk: it was verified before it ended, and later walks are left out.
        <Link to={listAddress('/certificates', { ...list, ...(finished_at !== null && { until: finished_at }) })}>
          Certificates{ofList}
        </Link>
      )}
    </p>
  );
}

/** The proof in words, or why there is none. */
function Outcome({ walk }: { readonly walk: WalkModel }) {
  const { status, verified, proof, unverified_reason, unverified_detail } = walk;
  if (status !== 'succeeded') return null;
  if (verified) return <p class="proof good">{proofInWords(proof)}</p>;
  if (unverified_reason === 'unavailable') return <p class="proof">{unverifiedInWords(unverified_reason)}</p>;
  return (
    <p class="proof warn">
      {unverified_reason === undefined ? 'Not proved complete.' : unverifiedInWords(unverified_reason)} {unverified_detail}
      The received records are mirrored; nothing was deleted.
    </p>
  );
}
