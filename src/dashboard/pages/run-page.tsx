import type { RunModel, WalkModel } from '../../api/runs/run-model.js';
import { adviceFor } from '../../core/advice.js';
import { ActionForm, AsCommands, get, useCommands } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { listAddress } from '../parts/list-page.js';
import type { PageRequest } from '../parts/page-request.js';
import { proofInWords, unverifiedInWords } from '../parts/proof-in-words.js';
import { Count, ListSection, ReadingCard } from '../parts/reading-card.js';
import {
  CodeHint,
  CompanyLink,
  durationText,
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
  return { title: `Run of ${nameOf(run)}`, body: <RunView run={run} /> };
}

const nameOf = ({ company_name, company_id }: RunModel) => company_name || company_id;

function isOver({ status }: Pick<RunModel, 'status'>): boolean {
  return status !== 'queued' && status !== 'running';
}

function RunView({ run }: { readonly run: RunModel }) {
  const address = useAddress();
  const commands = [...(isOver(run) ? [] : useCommands(['run.cancel'], { id: run.id })), get('This run', `/api/runs/${run.id}`)];
  return (
    // The script follows the events of the address, and loads this element again when the state of the run has changed.
    <div id="run" data-follow={isOver(run) ? undefined : address(`/runs/${run.id}/events`)} data-state={stateOf(run)}>
      <div class="head">
        <div>
          <h1>Run of {nameOf(run)}</h1>
          <p class="under">
            <State of={run.status} />
            <Environment name={run.environment} />
            <CompanyLink environment={run.environment} companyId={run.company_id} />
          </p>
        </div>
        <div class="actions">
          {!isOver(run) && <ActionForm name="run.cancel" fields={{ id: run.id }} />}
          <AsCommands commands={commands} />
        </div>
      </div>
      <Facts run={run} />
      {run.error && <Failure {...run.error} />}
      <h2>Lists</h2>
      {run.walks.length === 0 && <p class="empty">No list has begun yet.</p>}
      {run.walks.map((walk) => {
        const isSaidAbove = walk.error?.message === run.error?.message;
        if (run.kind === 'sync') return <WalkCard key={walk.resource} runId={run.id} walk={walk} isSaidAbove={isSaidAbove} />;
        return (
          <ReadingCard key={walk.resource} walk={walk}>
            {walk.error && !isSaidAbove && <Failure {...walk.error} />}
          </ReadingCard>
        );
      })}
      {run.walks.some(({ verified }) => verified) && (
        <p>
          <Link to={listAddress('/certificates', { environment: run.environment, company_id: run.company_id })}>
            Certificates of the proved lists
          </Link>
        </p>
      )}
      {!isOver(run) && (
        <p class="hint" data-followed>
          <Link to={`/runs/${run.id}`}>Look again</Link>
        </p>
      )}
    </div>
  );
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
      <Fact name={isOver(run) ? 'Took' : 'Has taken'}>
        <Took run={run} />
      </Fact>
      {typeof run.estimated_seconds_left === 'number' && (
        <Fact name="Still takes about">{durationText(run.estimated_seconds_left * 1_000)}</Fact>
      )}
      <Fact name="Attempts">{numberText(run.attempts)}</Fact>
      {run.retry_at && (
        <Fact name="Tries again">
          <When at={run.retry_at} />
        </Fact>
      )}
    </dl>
  );
}

function Failure({ code, message }: { readonly code: string; readonly message: string }) {
  const advice = adviceFor(code);
  return (
    <div class="notice bad">
      <p>{message}</p>
      {advice && <p>{advice}</p>}
      <CodeHint code={code} />
    </div>
  );
}

const COUNTS = ['received', 'inserted', 'updated', 'unchanged', 'deleted', 'rejected'] as const;

interface WalkCardProps {
  readonly runId: string;
  readonly walk: WalkModel;
  /** The run has the same error as the walk. */
  readonly isSaidAbove: boolean;
}

function WalkCard({ runId, walk, isSaidAbove }: WalkCardProps) {
  const { resource, status, received, total_records, pages, passes, resumed } = walk;
  const whole = total_records ?? 0;
  return (
    <ListSection resource={resource} status={status}>
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
      {status === 'running' && <p class="hint" data-rate />}
      <Outcome walk={walk} />
      {walk.inserted + walk.updated + walk.deleted > 0 && (
        <p>
          <Link to={`/runs/${runId}/diff?resource=${resource}`}>
            What changed<span class="unseen"> in {resource}</span>
          </Link>
        </p>
      )}
      {resumed && <p class="hint">It continued from a checkpoint. The counts include the records received before.</p>}
      {walk.error && !isSaidAbove && <Failure {...walk.error} />}
      <ServiceSays sentence={walk.service_says} />
    </ListSection>
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
