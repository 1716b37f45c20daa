import { examineWebhook } from '../db/tables/webhook.js';
import { type Check, counted, duration, ok, problem } from './check.js';
import type { DatabaseAccess } from './database-access.js';

/** Checks by past deliveries whether the webhook takes notifications. Sends nothing to it. */
export function checkWebhook({ access, isSet }: { access: DatabaseAccess; isSet: boolean }): Check {
  return {
    name: 'webhook',
    look: async () => {
      if (!isSet) return [ok('no webhook is set: no notification is sent')];
      const failing = await access.read(examineWebhook);
      if (!failing) return [ok('no delivery has failed since the last one that was taken')];
      const { seconds, undelivered, lastError } = failing;
      const why = [lastError.code, lastError.status, lastError.cause].filter(Boolean).join(' ');
      return [
        problem(
          `the webhook has taken nothing for ${duration(seconds)} (${why}), and ${counted(undelivered, 'notification')} wait or failed`,
          'See the receiver of NOTIFY_WEBHOOK_URL and its log, then send them again: `muster notifications redeliver-all`.',
        ),
      ];
    },
  };
}
