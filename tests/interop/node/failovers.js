// kafkajs while brokers fail: tests/faults/cluster/clients/speech.py says what it is told and what it says.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const [, , kind, servers, topic, last] = process.argv
const AT_ONCE = 2
const PAUSE_MS = 50
const DELIVERY_RETRIES = 500
const times = { initialRetryTime: 50, maxRetryTime: 300 }
const logCreator = () => ({ label, log }) => console.error(label, JSON.stringify(log))
const kafka = new Kafka({ brokers: servers.split(','), logLevel: logLevel.WARN, logCreator, retry: times })

let isOver = false
process.stdin.on('end', () => { isOver = true }).resume()

const say = (...words) => process.stdout.write(`${words.join(' ')}\n`)
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE_MS))

// A request for each partition: kafkajs 2.2 never sends what is for a leader that has answered already, where a
// partition has come to it meanwhile.
async function write(partitions) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, retry: { ...times, retries: DELIVERY_RETRIES } })
  await producer.connect()
  let sent = 0
  while (!isOver) {
    const numbers = [...Array(AT_ONCE * partitions).keys()].map((i) => sent + i)
    sent += numbers.length
    await Promise.all([...Array(partitions).keys()].map(async (partition) => {
      const own = numbers.filter((number) => number % partitions === partition)
      const messages = own.map((number) => ({ value: String(number), partition }))
      const baseOffset = await send(producer, messages)
      const isKnown = baseOffset !== undefined && baseOffset !== '-1'
      own.forEach((number, i) => say('acked', number, partition, isKnown ? Number(baseOffset) + i : -1))
    }))
    await pause()
  }
  await producer.disconnect()
  say('sent', sent)
}

// Its answer may be for nothing: then a retry has sent an empty request to a broker that did lead the partition when
// an earlier one began (producer/sendMessages.js keeps its brokers over retries), and no record.
async function send(producer, messages) {
  for (;;) {
    const [answer] = await producer.send({ topic, acks: -1, messages })
    if (answer !== undefined) return answer.baseOffset
    console.error('nothing was sent')
  }
}

// What asks for the group's coordinator looks where it was; only after a few retries, which end it, does a consumer
// begin anew and look for another.
async function read(groupId) {
  while (!isOver) {
    try {
      await readUntilCrash(groupId)
    } catch (error) {
      console.error(error)
      await pause()
    }
  }
}

// Some errors end a consumer for good, such as no broker that can tell of the coordinator: who uses it has to begin
// anew.
async function readUntilCrash(groupId) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 600, maxWaitTimeInMs: 200 })
  let isCrashed = false
  consumer.on(consumer.events.CRASH, ({ payload }) => { isCrashed = isCrashed || !payload.restart })
  // Told where the broker has answered: a consumer that begins anew takes a commit meanwhile for done, and sends none.
  consumer.on(consumer.events.COMMIT_OFFSETS, ({ payload }) => {
    for (const { partitions } of payload.topics) {
      for (const { partition, offset } of partitions) say('committed', partition, offset)
    }
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const eachBatch = async ({ batch, resolveOffset }) => {
    for (const { offset, value } of batch.messages) {
      say('read', batch.partition, offset, value)
      resolveOffset(offset)
    }
    await commit(consumer, batch.partition, String(Number(batch.lastOffset()) + 1))
  }
  await consumer.run({ autoCommit: false, eachBatch })
  while (!isOver && !isCrashed) await pause()
  await consumer.disconnect()
}

// A commit of one partition that comes while the member joins again for another is the next one's to do: raised from
// here it would end the consumer for good.
async function commit(consumer, partition, offset) {
  try {
    await consumer.commitOffsets([{ topic, partition, offset }])
  } catch (error) {
    const { type } = error.cause || error
    if (!['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'REBALANCE_IN_PROGRESS'].includes(type)) throw error
  }
}

// Connections to brokers that were away meanwhile it leaves open (cluster/brokerPool.js, removeBroker): they would keep
// the process.
const end = (error) => {
  if (error) console.error(error)
  process.stdout.write('', () => process.exit(error ? 1 : 0))
}

const done = kind === 'write' ? write(Number(last)) : read(last)
done.then(() => end(), end)
