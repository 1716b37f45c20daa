import { describe, expect, test } from 'vitest';
import { helpOf, SETTING_NAMES } from '../../src/config/settings.js';
import { find, manifestsOf, podsOf, template, VALUES } from './helm.js';

const of = (values: (typeof VALUES)[number], set: readonly string[] = []) => manifestsOf(template(values, { set }));
const everything = of('everything');
const secrets = SETTING_NAMES.filter((name) => helpOf(name).secret);

describe.each(VALUES)('with the values %s', (values) => {
  const manifests = of(values);
  const pods = Object.entries(podsOf(manifests));

  test('no manifest holds a secret, and secrets reach the processes as files alone', () => {
    expect(manifests.map(({ kind }) => kind)).not.toContain('Secret');
    const configured = manifests.flatMap(({ kind, data = {} }) => (kind === 'ConfigMap' ? Object.keys(data) : []));
    for (const [, { containers, volumes }] of pods)
      for (const { env, envFrom, volumeMounts } of containers) {
        expect(envFrom.filter((source) => !('configMapRef' in source))).toEqual([]);
        for (const name of [...env.map((each) => each.name), ...configured]) expect(secrets).not.toContain(name);
        const files = env.filter(({ name }) => name.endsWith('_FILE')).map(({ value = '' }) => value);
        expect(files.length).toBeGreaterThan(1);
        for (const file of files) {
          const mount = volumeMounts.find(({ mountPath }) => file.startsWith(`${mountPath}/`));
          const volume = volumes.find(({ name }) => name === mount?.name);
          expect(mount?.readOnly).toBe(true);
          expect(volume?.secret?.items.map(({ path }) => `${mount?.mountPath}/${path}`)).toContain(file);
        }
      }
  });

  test('no container has a way up, and none writes into its image', () => {
    expect(pods.length).toBeGreaterThan(1);
    for (const [, { containers, securityContext, automountServiceAccountToken }] of pods) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      // OpenShift refuses a user of the chart's own.
      expect(securityContext).not.toHaveProperty('runAsUser');
      expect(automountServiceAccountToken).toBe(false);
      for (const { securityContext: own, resources } of containers) {
        expect(own).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
        expect(resources).toMatchObject({ requests: { cpu: /./, memory: /./ }, limits: { memory: /./ } });
      }
    }
  });

  test('all processes are of one image, and each has the folders that it may write', () => {
    const containers = pods.flatMap(([, pod]) => pod.containers);
    expect(new Set(containers.map(({ image }) => image)).size).toBe(1);
    for (const { volumeMounts } of containers)
      expect(volumeMounts.filter(({ readOnly }) => !readOnly).map(({ mountPath }) => mountPath)).toEqual(
        expect.arrayContaining(['/var/lib/muster', '/tmp']),
      );
  });

  test('API and workers answer probes, and stop before they are killed', () => {
    for (const [, { containers, terminationGracePeriodSeconds }] of pods.filter(([name]) => name !== 'migrate')) {
      expect(terminationGracePeriodSeconds).toBe(30);
      expect(containers[0]?.livenessProbe?.httpGet).toEqual({ path: '/healthz', port: 'probes' });
      expect(containers[0]?.startupProbe?.httpGet).toEqual({ path: '/healthz', port: 'probes' });
      expect(containers[0]?.readinessProbe?.httpGet).toEqual({ path: '/readyz', port: 'probes' });
    }
  });

  test('selectors are of labels that do not change with the version', () => {
    const selectors = manifests.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.selector.matchLabels);
    for (const [i, role] of ['api', 'worker'].entries())
      expect(selectors[i]).toEqual({
        'app.kubernetes.io/name': 'muster',
        'app.kubernetes.io/instance': 'fleet',
        'app.kubernetes.io/component': role,
      });
  });
});

describe('the migration', () => {
  const hooks = everything.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook']);
  const job = find(everything, 'Job');

  test('runs before everything else, with settings of its own, and as the owner of the database', () => {
    const order = hooks.map(({ kind, metadata }) => [kind, Number(metadata.annotations?.['helm.sh/hook-weight'])]);
    expect(order.toSorted()).toEqual([
      ['ConfigMap', -10],
      ['Job', 0],
      ['NetworkPolicy', -10],
    ]);
    for (const { metadata } of hooks) {
      expect(metadata.annotations?.['helm.sh/hook']).toBe('pre-install,pre-upgrade');
      expect(metadata.annotations?.['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded');
    }
    const [container] = job.spec.template.spec.containers;
    expect(container?.args).toEqual(['migrate', '--grant-runtime', 'muster_app']);
    expect(container?.env).toContainEqual({ name: 'DATABASE_URL_FILE', value: '/run/secrets/migrate/database_url' });
    expect(container?.env.filter(({ name }) => name === 'DATABASE_URL_FILE')).toHaveLength(1);
    expect(container?.env.map(({ name }) => name)).toContain('REDIS_URL_FILE');
  });

  test('needs nothing that is made after it', () => {
    const { serviceAccountName, volumes, containers } = job.spec.template.spec;
    expect(serviceAccountName).toBe('default');
    const used = [
      ...volumes.flatMap(({ configMap }) => configMap?.name ?? []),
      ...containers.flatMap(({ envFrom }) => envFrom.map((from) => from.configMapRef.name)),
    ];
    const made = hooks.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
    expect(new Set(used.filter((name) => name.startsWith('fleet')))).toEqual(new Set(made));
    const { data } = find(everything, 'ConfigMap', '-shared');
    expect(find(everything, 'ConfigMap', '-migrate').data).toEqual(data);
  });

  test('sees neither the secrets of the API nor the other address of the database', () => {
    const { volumes } = job.spec.template.spec;
    const keys = volumes.flatMap(({ secret }) => (secret ? secret.items.map(({ key }) => `${secret.secretName}/${key}`) : []));
    expect(keys.toSorted()).toEqual([
      'fleet/client_secret',
      'fleet/encryption_keys',
      'fleet/privacy_key',
      'fleet/redis_url',
      'fleet/webhook_secret',
      'fleet/webhook_url',
      'muster-migrate/database_url',
    ]);
  });
});

describe('settings', () => {
  const shared = find(everything, 'ConfigMap', '-shared').data;

  test('are what YAML made of them, as Muster reads them', () => {
    expect(shared).toMatchObject({
      ANSWER_MEMORY_MB: '1000000',
      RUN_RETENTION_DAYS: '30',
      VERIFY_SHARE_PER_NIGHT: '3%',
      EXPORT_CHANGES: 'yes',
      EXPORT_REQUIRE_VERIFIED: 'no',
      STALE_AFTER_HOURS: '50',
      SYNC_CRON: '30 1 * * *',
      PRODUCTION_BASE_URL_NUMBERS: 'https://numbers.example.com',
    });
    expect(shared).not.toHaveProperty('LOG_LEVEL');
    expect(shared?.['catalogue.yaml']).toMatch(
      /^# \{\{ braces \}\} and "quotes" stay as they are\.\nemployees:\n {2}method: GET\n/,
    );
  });

  test('of sign-in and of connect pages are for the API alone', () => {
    const api = find(everything, 'ConfigMap', '-api').data;
    expect(Object.keys(api ?? {}).toSorted()).toEqual(['OIDC_ADMINS', 'OIDC_CLIENT_ID', 'OIDC_ISSUER', 'OPERATOR_NAME']);
    expect(Object.keys(shared ?? {}).filter((name) => name in api!)).toEqual([]);
    const pods = podsOf(everything);
    for (const role of ['worker', 'migrate'])
      expect(JSON.stringify(pods[role])).not.toMatch(/fleet-muster-api|muster-api|admin_token|oidc/);
  });

  test('that change restart the pods, and nothing else does', () => {
    const sums = (set: readonly string[]) =>
      ['-api', '-worker'].map(
        (end) => find(of('everything', set), 'Deployment', end).spec.template.metadata.annotations?.['checksum/configuration'],
      );
    const before = sums([]);
    expect(sums(['api.replicas=5', 'serviceMonitor.enabled=false'])).toEqual(before);
    for (const changed of ['settings.SYNC_TIMEZONE=Europe/Oslo', 'catalogue=employees: {}', 'settings.OIDC_VIEWERS=staff'])
      expect(
        sums([changed]).filter((sum) => before.includes(sum)),
        changed,
      ).toEqual([]);
  });
});

describe('the network', () => {
  const egress = (role: string) =>
    find(everything, 'NetworkPolicy', `-${role}`).spec['egress'] as { ports: { port: number }[]; to?: object[] }[];
  const ports = (role: string) => egress(role).map((rule) => rule.ports.map(({ port }) => port));

  test('leads out to what a process needs', () => {
    expect(ports('api')).toEqual([[53, 53], [5432], [6379], [443], [4318]]);
    expect(ports('worker')).toEqual(ports('api'));
    expect(ports('migrate')).toEqual([[53, 53], [5432], [4318]]);
    expect(egress('worker')[1]?.to).toEqual([{ ipBlock: { cidr: '10.1.0.0/16' } }]);
    const withoutRedis = find(of('minimal'), 'NetworkPolicy', '-worker').spec['egress'] as { ports: { port: number }[] }[];
    expect(withoutRedis.map((rule) => rule.ports.map(({ port }) => port))).toEqual([[53, 53], [5432], [443]]);
  });

  test('leads in to the API from the ingress and from Prometheus, and to probes', () => {
    const ingress = (role: string) =>
      find(everything, 'NetworkPolicy', `-${role}`).spec['ingress'] as { ports: { port: string }[]; from?: object[] }[];
    const names = ['ingress-nginx', 'monitoring'].map((name) => ({
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
    }));
    expect(ingress('api')).toEqual([
      { ports: [{ protocol: 'TCP', port: 'http' }], from: names },
      { ports: [{ protocol: 'TCP', port: 'probes' }] },
    ]);
    expect(ingress('worker')).toEqual([{ ports: [{ protocol: 'TCP', port: 'probes' }] }]);
    expect(ingress('migrate')).toEqual([]);
  });
});

describe('operation', () => {
  test('an upgrade takes no API away before another one is ready', () => {
    expect(find(everything, 'Deployment', '-api').spec.strategy?.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
  });

  test('each pod has a token journal of its own in the claim, and the migration none', () => {
    const pods = podsOf(everything);
    for (const role of ['api', 'worker'])
      expect(pods[role]?.containers[0]?.env).toContainEqual({
        name: 'TOKEN_JOURNAL',
        value: '/var/lib/muster-journal/$(POD_NAME).journal',
      });
    expect(JSON.stringify(pods['migrate'])).not.toContain('journal');
  });

  test('KEDA decides on the number of workers where it is on, by the database', () => {
    expect(find(everything, 'Deployment', '-worker').spec).not.toHaveProperty('replicas');
    expect(find(of('minimal'), 'Deployment', '-worker').spec.replicas).toBe(2);
    const { spec } = find(everything, 'ScaledObject');
    const [trigger] = spec['triggers'] as { type: string; metadata: Record<string, string> }[];
    expect(trigger).toMatchObject({ type: 'postgresql', metadata: { targetQueryValue: '8' } });
    expect(find(everything, 'TriggerAuthentication').spec['secretTargetRef']).toEqual([
      { parameter: 'connection', name: 'muster-keda', key: 'database_url' },
    ]);
    expect(spec['scaleTargetRef']).toEqual({ name: find(everything, 'Deployment', '-worker').metadata.name });
  });

  test('Prometheus is given the token, and its own texts stay as they are', () => {
    expect(find(everything, 'ServiceMonitor').spec['endpoints']).toMatchObject([
      { port: 'http', path: '/metrics', authorization: { credentials: { name: 'muster-api', key: 'metrics_token' } } },
    ]);
    expect(JSON.stringify(find(everything, 'PrometheusRule').spec)).toContain('{{ $labels.instance }} is down');
  });
});
