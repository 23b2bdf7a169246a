// Does with sarama what programs do with a broker, and prints what it saw as JSON. Its arguments are the
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

	"github.com/IBM/sarama"
)

var (
	ctx, cancel = context.WithTimeout(context.Background(), 140*time.Second)
	brokers     = []string{os.Args[1]}
	prefix      = os.Args[2]
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

// settings are for any client here; the version says which requests sarama makes.
func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Heartbeat.Interval = 100 * time.Millisecond
	return config
}

// idempotent sends exactly once what is sent again, which takes one request at a time.
func idempotent(config *sarama.Config) *sarama.Config {
	config.Producer.Idempotent = true
	config.Net.MaxOpenRequests = 1
	return config
}

func create(admin sarama.ClusterAdmin, topic string, partitions int32) string {
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	return topic
}

// consume reads the first `count` records of partition 0, and tells each as a line.
func consume(topic string, count int, isolation sarama.IsolationLevel) (lines []string) {
	config := settings()
	config.Consumer.IsolationLevel = isolation
	consumer := must(sarama.NewConsumer(brokers, config))
	defer consumer.Close()
	partition := must(consumer.ConsumePartition(topic, 0, sarama.OffsetOldest))
	defer partition.Close()
	for len(lines) < count {
		select {
		case message := <-partition.Messages():
			line := fmt.Sprint(message.Offset, " ", show(message.Key), " ", show(message.Value))
			for _, header := range message.Headers {
				line += " " + string(header.Key) + "=" + show(header.Value)
			}
			lines = append(lines, line)
		case <-ctx.Done():
			panic(fmt.Sprint("too late, with these records: ", lines))
		}
	}
	return lines
}

// read gives the values of a topic's only partition up to its end.
func read(topic string, end int64, isolation sarama.IsolationLevel) (values []string) {
	config := settings()
	config.Consumer.IsolationLevel = isolation
	consumer := must(sarama.NewConsumer(brokers, config))
	defer consumer.Close()
	partition := must(consumer.ConsumePartition(topic, 0, sarama.OffsetOldest))
	defer partition.Close()
	for next := int64(0); next < end; {
		select {
		case message := <-partition.Messages():
			values, next = append(values, string(message.Value)), message.Offset+1
		case <-ctx.Done():
			panic(fmt.Sprint("too late, with so many records: ", len(values)))
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
func codecs(admin sarama.ClusterAdmin) any {
	seen := map[string]any{}
	for _, codec := range []sarama.CompressionCodec{sarama.CompressionNone, sarama.CompressionGZIP,
		sarama.CompressionSnappy, sarama.CompressionLZ4, sarama.CompressionZSTD} {
		topic, config := create(admin, prefix+"-"+codec.String(), 1), idempotent(settings())
		config.Producer.Compression = codec
		producer := must(sarama.NewSyncProducer(brokers, config))
		header := sarama.RecordHeader{Key: []byte("h"), Value: []byte("1")}
		check(producer.SendMessages([]*sarama.ProducerMessage{
			{Topic: topic, Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder("v"),
				Headers: []sarama.RecordHeader{header}},
			{Topic: topic, Value: sarama.StringEncoder("")},
			{Topic: topic, Key: sarama.StringEncoder("")},
			{Topic: topic, Value: sarama.StringEncoder(strings.Repeat("large ", 150000))},
		}))
		check(producer.Close())
		seen[codec.String()] = consume(topic, 4, sarama.ReadUncommitted)
	}
	return seen
}

// transactions commits and aborts in turn; then another producer of the same id fences the first.
func transactions(admin sarama.ClusterAdmin) any {
	topic := create(admin, prefix+"-transactions", 1)
	connect := func() sarama.SyncProducer {
		config := idempotent(settings())
		config.Producer.Transaction.ID = prefix + "-id"
		return must(sarama.NewSyncProducer(brokers, config))
	}
	send := func(producer sarama.SyncProducer, value string) error {
		check(producer.BeginTxn())
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)})
		return err
	}
	first := connect()
	for i := 0; i < 4; i++ {
		check(send(first, fmt.Sprint(i)))
		if i%2 == 0 {
			check(first.CommitTxn())
		} else {
			check(first.AbortTxn())
		}
	}
	second := connect()
	check(send(second, "second"))
	fenced := send(first, "first")
	check(second.CommitTxn())
	check(second.Close())
	first.Close()
	return map[string]any{"committed": consume(topic, 3, sarama.ReadCommitted),
		"all":    len(consume(topic, 5, sarama.ReadUncommitted)),
		"fenced": errors.Is(fenced, sarama.ErrProducerFenced) || errors.Is(fenced, sarama.ErrInvalidProducerEpoch)}
}

// member reads what it is assigned, marks it, and tells of both.
type member struct{ owned, read chan int }

func (m member) Setup(session sarama.ConsumerGroupSession) error {
	owned := 0
	for _, partitions := range session.Claims() {
		owned += len(partitions)
	}
	m.owned <- owned
	return nil
}

func (m member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
			session.Commit()
			m.read <- 1
		case <-session.Context().Done():
			return nil
		}
	}
}

// group has a second member join while the first reads; both end with two partitions of four.
func group(admin sarama.ClusterAdmin) any {
	topic, id := create(admin, prefix+"-group", 4), prefix+"-members"
	producer := must(sarama.NewSyncProducer(brokers, settings()))
	for i := int32(0); i < 40; i++ {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: i % 4, Value: sarama.StringEncoder("v")})
		check(err)
	}
	check(producer.Close())
	members, owned, read := []sarama.ConsumerGroup{}, [2]int{}, 0
	events := []member{{make(chan int, 100), make(chan int, 100)}, {make(chan int, 100), make(chan int, 100)}}
	join := func(n int) {
		client := must(sarama.NewConsumerGroup(brokers, id, settings()))
		members = append(members, client)
		go func() {
			for client.Consume(ctx, []string{topic}, events[n]) == nil {
			}
		}()
	}
	until := func(condition func() bool) {
		for !condition() {
			select {
			case owned[0] = <-events[0].owned:
			case owned[1] = <-events[1].owned:
			case <-events[0].read:
				read++
			case <-events[1].read:
				read++
			case <-ctx.Done():
				panic(fmt.Sprint("too late, with these partitions and records: ", owned, read))
			}
		}
	}
	join(0)
	until(func() bool { return read == 40 })
	join(1)
	until(func() bool { return owned == [2]int{2, 2} })
	described := must(admin.DescribeConsumerGroups([]string{id}))[0]
	committed := []int64{}
	offsets := must(admin.ListConsumerGroupOffsets(id, map[string][]int32{topic: {0, 1, 2, 3}}))
	for partition := int32(0); partition < 4; partition++ {
		committed = append(committed, offsets.GetBlock(topic, partition).Offset)
	}
	for _, client := range members {
		check(client.Close())
	}
	return map[string]any{"read": read, "state": described.State, "protocol": described.Protocol,
		"members": len(described.Members), "committed": committed}
}

// administer makes, changes, describes and deletes.
func administer(admin sarama.ClusterAdmin) any {
	topic, size := create(admin, prefix+"-admin", 2), "2000"
	again := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false)
	check(admin.CreatePartitions(topic, 3, nil, false))
	check(admin.IncrementalAlterConfig(sarama.TopicResource, topic, map[string]sarama.IncrementalAlterConfigsEntry{
		"max.message.bytes": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &size}}, false))
	configs := []string{}
	for _, entry := range must(admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})) {
		if entry.Source == sarama.SourceTopic {
			configs = append(configs, entry.Name+"="+entry.Value)
		}
	}
	producer := must(sarama.NewSyncProducer(brokers, settings()))
	for i := int64(0); i < 10; i++ {
		_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Timestamp: time.UnixMilli(1000 * i)})
		check(err)
	}
	_, _, large := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 3000))})
	check(producer.Close())
	client := must(sarama.NewClient(brokers, settings()))
	defer client.Close()
	after := must(client.GetOffset(topic, 0, 4500))
	check(admin.DeleteRecords(topic, map[int32]int64{0: 4}))
	start := must(client.GetOffset(topic, 0, sarama.OffsetOldest))
	check(client.RefreshMetadata(topic))
	partitions := len(must(client.Partitions(topic)))
	check(admin.DeleteTopic(topic))
	_, exists := must(admin.ListTopics())[topic]
	nodes, _, err := admin.DescribeCluster()
	check(err)
	return map[string]any{"again": errors.Is(again, sarama.ErrTopicAlreadyExists), "configs": configs,
		"large": errors.Is(large, sarama.ErrMessageSizeTooLarge), "after": after, "start": start,
		"partitions": partitions, "brokers": len(nodes), "deleted": !exists,
		"absent": errors.Is(admin.DeleteConsumerGroup("absent"), sarama.ErrGroupIDNotFound)}
}

func main() {
	defer cancel()
	if prefix == "read" {
		isolation := sarama.ReadUncommitted
		if os.Args[5] == "committed" {
			isolation = sarama.ReadCommitted
		}
		end := must(strconv.ParseInt(os.Args[4], 10, 64))
		check(json.NewEncoder(os.Stdout).Encode(read(os.Args[3], end, isolation)))
		return
	}
	admin := must(sarama.NewClusterAdmin(brokers, settings()))
	defer admin.Close()
	seen := map[string]any{"codecs": codecs(admin), "transactions": transactions(admin), "group": group(admin)}
	seen["admin"] = administer(admin)
	check(json.NewEncoder(os.Stdout).Encode(seen))
}
