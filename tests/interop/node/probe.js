// Does with kafkajs what programs do with a broker, and prints what it saw as JSON.
//
//     node probe.js BOOTSTRAP PREFIX    names of topics and groups begin with PREFIX
//     node probe.js BOOTSTRAP read TOPIC END committed|uncommitted    the values of a topic, up to an offset
'use strict'
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const snappy = require('snappyjs')
const { ZstdCodec } = require('zstd-codec')

const [, , bootstrap, prefix] = process.argv
const DEADLINE_MS = 140000
const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING })
const admin = kafka.admin()

// kafkajs brings gzip only. What it does not have yet arrives as it was sent, whole, which is all snappyjs reads.
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async (encoder) => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from(snappy.uncompress(buffer)),
})
const zstd = new Promise((resolve) => ZstdCodec.run((codec) => resolve(new codec.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
})

const show = (value) => {
  if (value === null || value === undefined) return 'null'
  return value.length > 100 ? `${value.length}-bytes` : JSON.stringify(value.toString())
}

const tell = ({ offset, key, value, headers }) =>
  [offset, show(key), show(value), ...Object.entries(headers).map(([name, v]) => `${name}=${show(v)}`)].join(' ')

// The error's type as Kafka names it, of a call that is expected to fail.
async function failure(promise) {
  try {
    await promise
    return null
  } catch (error) {
    const [first] = error.errors || error.groups || [error]
    return (first.error || first).type || first.message
  }
}

// Something to wait for until a condition is true; `look` is called whenever it may have become so.
function watch() {
  let check = () => {}
  return {
    look: () => check(),
    until: (condition) => new Promise((resolve) => {
      check = () => condition() && resolve()
      check()
    }),
  }
}

// Join a group and read a topic from its start. Gives the consumer once it runs.
async function join(topic, groupId, onMessage, onJoin = () => {}, options = {}) {
  const consumer = kafka.consumer({ groupId, heartbeatInterval: 50, maxWaitTimeInMs: 50, ...options })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => onJoin(payload.memberAssignment[topic] || []))
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => onMessage(message) })
  return consumer
}

// Read the first `count` records of a topic.
async function consume(topic, count, options = {}) {
  const seen = []
  const { look, until } = watch()
  const message = (m) => { seen.push(m); look() }
  const consumer = await join(topic, `${topic}-${JSON.stringify(options)}`, message, undefined, options)
  await until(() => seen.length >= count)
  await consumer.disconnect()
  return seen
}

// The values of a topic's only partition up to its end.
async function read(topic, end, isolation) {
  const values = []
  let next = 0
  const { look, until } = watch()
  const message = ({ offset, value }) => { values.push(value.toString()); next = Number(offset) + 1; look() }
  const options = { readUncommitted: isolation === 'uncommitted' }
  const consumer = await join(topic, `${topic}-${isolation}`, message, undefined, options)
  await until(() => next >= end)
  await consumer.disconnect()
  return values
}

async function connected(options) {
  const producer = kafka.producer(options)
  await producer.connect()
  return producer
}

// Sends idempotently what is special: headers, nulls, empty values and a large record.
async function codecs() {
  const seen = {}
  for (const name of ['None', 'GZIP', 'Snappy', 'ZSTD']) {
    const topic = `${prefix}-${name}`
    await admin.createTopics({ topics: [{ topic }] })
    const producer = await connected({ idempotent: true })
    const messages = [
      { key: 'k', value: 'v', headers: { h: '1' } },
      { key: null, value: '' },
      { key: '', value: null },
      { value: 'large '.repeat(150000) },
    ]
    await producer.send({ topic, messages, compression: CompressionTypes[name] })
    await producer.disconnect()
    seen[name.toLowerCase()] = (await consume(topic, 4)).map(tell)
  }
  return seen
}

// Commits and aborts in turn; then another producer of the same id fences the first.
async function transactions() {
  const topic = `${prefix}-transactions`
  const consumerGroupId = `${prefix}-sent`
  await admin.createTopics({ topics: [{ topic }] })
  const options = { transactionalId: `${prefix}-id`, idempotent: true, maxInFlightRequests: 1 }
  const first = await connected(options)
  for (let i = 0; i < 4; i++) {
    const transaction = await first.transaction()
    await transaction.send({ topic, messages: [{ value: String(i) }] })
    const offsets = [{ topic, partitions: [{ partition: 0, offset: String(i) }] }]
    await transaction.sendOffsets({ consumerGroupId, topics: offsets })
    await (i % 2 ? transaction.abort() : transaction.commit())
  }
  const second = await connected(options)
  const transaction = await second.transaction()
  await transaction.send({ topic, messages: [{ value: 'second' }] })
  const late = await first.transaction()
  const fenced = await failure(late.send({ topic, messages: [{ value: 'first' }] }))
  await transaction.commit()
  await Promise.all([first.disconnect(), second.disconnect()])
  const sent = await admin.fetchOffsets({ groupId: consumerGroupId, topics: [topic] })
  return {
    committed: (await consume(topic, 3)).map(tell),
    all: (await consume(topic, 5, { readUncommitted: true })).length,
    sent: sent[0].partitions[0].offset,
    fenced,
  }
}

// How many records a group has committed, over all partitions of a topic.
async function committed(groupId, topic) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return partitions.reduce((sum, p) => sum + Math.max(Number(p.offset), 0), 0)
}

// A second member joins while the first reads, and leaves again.
async function group() {
  const topic = `${prefix}-group`
  const groupId = `${prefix}-members`
  await admin.createTopics({ topics: [{ topic, numPartitions: 4 }] })
  const producer = await connected()
  await producer.send({ topic, messages: [...Array(40).keys()].map((i) => ({ value: 'v', partition: i % 4 })) })
  await producer.disconnect()
  const owned = [0, 0]
  let read = 0
  const { look, until } = watch()
  const member = (n) => join(topic, groupId, () => { read++; look() }, (own) => { owned[n] = own.length; look() })
  const first = await member(0)
  await until(() => read === 40)
  // Who joins before the last records are committed has them read again.
  while (await committed(groupId, topic) < 40) {}
  const second = await member(1)
  await until(() => owned[0] === 2 && owned[1] === 2)
  const { state, protocol, members } = (await admin.describeGroups([groupId])).groups[0]
  await second.disconnect()
  await until(() => owned[0] === 4)
  await first.disconnect()
  const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
  return { read, state, protocol, members: members.length, committed: partitions.map((p) => Number(p.offset)) }
}

// Makes, changes, describes and deletes.
async function administer() {
  const topic = `${prefix}-admin`
  const configEntries = [{ name: 'max.message.bytes', value: '2000' }]
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  await admin.createTopics({ topics: [{ topic, numPartitions: 2 }] })
  const again = !(await admin.createTopics({ topics: [{ topic }] }))
  const name = await failure(admin.createTopics({ topics: [{ topic: 'not a name' }] }))
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] })
  const described = (await admin.describeConfigs({ resources: [resource] })).resources[0].configEntries
  const own = described.filter((c) => c.configSource === 1).map((c) => `${c.configName}=${c.configValue}`)
  const producer = await connected()
  const messages = [...Array(10).keys()].map((i) => ({ value: 'v', partition: 0, timestamp: String(1000 * i) }))
  await producer.send({ topic, messages })
  const large = await failure(producer.send({ topic, messages: [{ value: 'v'.repeat(3000) }] }))
  await producer.disconnect()
  const after = (await admin.fetchTopicOffsetsByTimestamp(topic, 4500)).find((p) => p.partition === 0).offset
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '4' }] })
  const start = (await admin.fetchTopicOffsets(topic)).find((p) => p.partition === 0).low
  const partitions = (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  const absent = await failure(admin.deleteGroups([`${prefix}-absent`]))
  await admin.deleteTopics({ topics: [topic] })
  const deleted = !(await admin.listTopics()).includes(topic)
  const brokers = (await admin.describeCluster()).brokers.length
  return { again, name, configs: own, large, after, start, partitions, absent, deleted, brokers }
}

async function main() {
  setTimeout(() => { throw new Error('not done in time') }, DEADLINE_MS).unref()
  if (prefix === 'read') {
    const [topic, end, isolation] = process.argv.slice(4)
    console.log(JSON.stringify(await read(topic, Number(end), isolation)))
    return
  }
  await admin.connect()
  const seen = { codecs: await codecs(), transactions: await transactions(), group: await group(), admin: await administer() }
  await admin.disconnect()
  console.log(JSON.stringify(seen))
}

main().catch((error) => { console.error(error); process.exit(1) })
