// Does with franz-go what programs do with a broker, and prints what it saw as JSON. Its arguments are the
// bootstrap server and a prefix for the names of topics and groups; or the bootstrap server, "read", a topic, the
// offset behind its last record, and "committed" or "uncommitted": then it prints the topic's values.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	ctx, cancel = context.WithTimeout(context.Background(), 140*time.Second)
	prefix      = os.Args[2]
	fromStart   = kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must gives the value of a call that may not fail.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func connect(options ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append(options, kgo.SeedBrokers(os.Args[1]))...))
}

// consume reads the first `count` records of a topic, and tells each as a line.
func consume(topic string, count int, options ...kgo.Opt) (lines []string) {
	client := connect(append(options, kgo.ConsumeTopics(topic), fromStart)...)
	defer client.Close()
	for len(lines) < count {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			line := fmt.Sprint(record.Offset, " ", show(record.Key), " ", show(record.Value))
			for _, header := range record.Headers {
				line += " " + header.Key + "=" + show(header.Value)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// read gives the values of a topic up to its end.
func read(topic string, end int64, isolation kgo.IsolationLevel) (values []string) {
	client := connect(kgo.ConsumeTopics(topic), fromStart, kgo.FetchIsolationLevel(isolation))
	defer client.Close()
	for next := int64(0); next < end; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		for _, record := range fetches.Records() {
			values, next = append(values, string(record.Value)), record.Offset+1
		}
	}
	return values
}

func show(value []byte) string {
	if value == nil {
		return "null"
	}
	if len(value) > 100 {
		return fmt.Sprint(len(value), "-bytes")
	}
	return fmt.Sprintf("%q", value)
}

// codecs sends idempotently what is special: headers, nulls, empty values and a large record.
func codecs(admin *kadm.Client) any {
	seen, all := map[string]any{}, []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(),
		kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	for i, name := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := prefix + "-" + name
		must(admin.CreateTopic(ctx, 1, 1, nil, topic))
		producer := connect(kgo.ProducerBatchCompression(all[i]), kgo.DefaultProduceTopic(topic))
		first := kgo.KeyStringRecord("k", "v")
		first.Headers = []kgo.RecordHeader{{Key: "h", Value: []byte("1")}, {Key: "n"}}
		check(producer.ProduceSync(ctx, first, &kgo.Record{Value: []byte{}}, &kgo.Record{Key: []byte{}},
			&kgo.Record{Value: []byte(strings.Repeat("large ", 150000))}).FirstErr())
		producer.Close()
		seen[name] = consume(topic, 4)
	}
	return seen
}

// transactions commits and aborts in turn; then another producer of the same id fences the first.
func transactions(admin *kadm.Client) any {
	topic := prefix + "-transactions"
	must(admin.CreateTopic(ctx, 1, 1, nil, topic))
	options := []kgo.Opt{kgo.TransactionalID(prefix + "-id"), kgo.DefaultProduceTopic(topic)}
	first, second := connect(options...), connect(options...)
	defer first.Close()
	defer second.Close()
	for i := 0; i < 4; i++ {
		check(first.BeginTransaction())
		check(first.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(i))).FirstErr())
		check(first.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)))
	}
	check(second.BeginTransaction())
	check(second.ProduceSync(ctx, kgo.StringRecord("second")).FirstErr())
	check(first.BeginTransaction())
	fenced := first.ProduceSync(ctx, kgo.StringRecord("first")).FirstErr()
	check(second.EndTransaction(ctx, kgo.TryCommit))
	return map[string]any{"committed": consume(topic, 3, kgo.FetchIsolationLevel(kgo.ReadCommitted())),
		"all": len(consume(topic, 5)), "fenced": errors.Is(fenced, kerr.ProducerFenced)}
}

// group has a second member join while the first reads; both end with two partitions of four.
func group(admin *kadm.Client) any {
	topic, id := prefix+"-group", prefix+"-members"
	must(admin.CreateTopic(ctx, 4, 1, nil, topic))
	producer := connect(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(topic))
	for i := int32(0); i < 40; i++ {
		check(producer.ProduceSync(ctx, &kgo.Record{Partition: i % 4, Value: []byte("v")}).FirstErr())
	}
	producer.Close()
	events, members, owned, read := make(chan func(), 100), []*kgo.Client{}, [2]int{}, 0
	join := func(n int) {
		count := func(sign int) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
				events <- func() { owned[n] += sign * len(partitions[topic]) }
			}
		}
		member := connect(kgo.ConsumerGroup(id), kgo.ConsumeTopics(topic), fromStart, kgo.DisableAutoCommit(),
			kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.HeartbeatInterval(100*time.Millisecond),
			kgo.OnPartitionsAssigned(count(1)), kgo.OnPartitionsRevoked(count(-1)))
		members = append(members, member)
		go func() {
			for fetches := member.PollFetches(ctx); !fetches.IsClientClosed(); fetches = member.PollFetches(ctx) {
				if records := fetches.NumRecords(); records > 0 {
					check(member.CommitUncommittedOffsets(ctx))
					events <- func() { read += records }
				}
			}
		}()
	}
	until := func(condition func() bool) {
		for !condition() {
			select {
			case apply := <-events:
				apply()
			case <-ctx.Done():
				panic(fmt.Sprint("too late, with these partitions and records: ", owned, read))
			}
		}
	}
	join(0)
	until(func() bool { return read == 40 })
	join(1)
	until(func() bool { return owned == [2]int{2, 2} })
	described := must(admin.DescribeGroups(ctx, id))
	for _, member := range members {
		member.Close()
	}
	lag := must(admin.Lag(ctx, id))
	return map[string]any{"read": read, "lag": lag[id].Lag.Total(), "protocol": described[id].Protocol,
		"members": len(described[id].Members), "after": lag[id].State}
}

// administer makes, changes, describes and deletes.
func administer(admin *kadm.Client) any {
	topic, size := prefix+"-admin", "2000"
	must(admin.CreateTopic(ctx, 2, 1, nil, topic))
	_, again := admin.CreateTopic(ctx, 2, 1, nil, topic)
	must(admin.UpdatePartitions(ctx, 3, topic))
	must(admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "max.message.bytes", Value: &size}}, topic))
	configs := []string{}
	for _, config := range must(admin.DescribeTopicConfigs(ctx, topic))[0].Configs {
		if config.Source.String() == "DYNAMIC_TOPIC_CONFIG" {
			configs = append(configs, config.Key+"="+*config.Value)
		}
	}
	producer := connect(kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	defer producer.Close()
	for i := int64(0); i < 10; i++ {
		check(producer.ProduceSync(ctx, &kgo.Record{Timestamp: time.UnixMilli(1000 * i)}).FirstErr())
	}
	large := producer.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 3000)}).FirstErr()
	after := must(admin.ListOffsetsAfterMilli(ctx, 4500, topic))[topic][0].Offset
	must(admin.DeleteRecords(ctx, kadm.Offsets{topic: {0: {Topic: topic, At: 4}}}))
	start := must(admin.ListStartOffsets(ctx, topic))[topic]
	must(admin.DeleteTopics(ctx, topic))
	absent := must(admin.DeleteGroups(ctx, "absent"))["absent"].Err
	return map[string]any{"again": errors.Is(again, kerr.TopicAlreadyExists), "configs": configs,
		"large": errors.Is(large, kerr.MessageTooLarge), "after": after, "start": start[0].Offset, "partitions": len(start),
		"brokers": len(must(admin.BrokerMetadata(ctx)).Brokers),
		"deleted": !must(admin.ListTopics(ctx)).Has(topic), "absent": errors.Is(absent, kerr.GroupIDNotFound)}
}

func main() {
	defer cancel()
	if prefix == "read" {
		isolation := kgo.ReadUncommitted()
		if os.Args[5] == "committed" {
			isolation = kgo.ReadCommitted()
		}
		end := must(strconv.ParseInt(os.Args[4], 10, 64))
		check(json.NewEncoder(os.Stdout).Encode(read(os.Args[3], end, isolation)))
		return
	}
	admin := kadm.NewClient(connect())
	defer admin.Close()
	seen := map[string]any{"codecs": codecs(admin), "transactions": transactions(admin), "group": group(admin)}
	seen["admin"] = administer(admin)
	check(json.NewEncoder(os.Stdout).Encode(seen))
}
